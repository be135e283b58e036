/* Loaded before the C library (LD_PRELOAD): a signal interrupts every second call that writes a file. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static int isInterrupted(int *calls) {
  if (++*calls % 2 == 0)
    return 0;
  errno = EINTR;
  return 1;
}

#define INTERRUPT(result, name, parameters, arguments)                                                                \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    static int calls;                                                                                                 \
    result(*real) parameters = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                         \
    return isInterrupted(&calls) ? (result)-1 : real arguments;                                                       \
  }

INTERRUPT(ssize_t, write, (int file, const void *data, size_t bytes), (file, data, bytes))
INTERRUPT(int, fsync, (int file), (file))
INTERRUPT(int, flock, (int file, int how), (file, how))

/* Linux closes the file all the same. */
__attribute__((visibility("default"))) int close(int file) {
  static int calls;
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
  int result = real(file);
  return isInterrupted(&calls) ? -1 : result;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...) {
  static int calls;
  va_list rest;
  va_start(rest, flags);
  int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  return flags & O_CREAT && isInterrupted(&calls) ? -1 : real(path, flags, mode);
}
