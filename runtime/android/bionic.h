/* What the runtime takes of Android's C library, of API level 24, so that it is built without the NDK.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Types and numbers are those of the system's binary interface: of Linux for arm, arm64 and x86-64, and of bionic where
 * it has its own (pthread_t, sysconf, __errno, struct stat with 64-bit sizes on arm). Stands for all headers that
 * sources name. symbols.txt lists the functions. */
#pragma once

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/freestanding/string.h"

#if !defined(__ANDROID__) || !defined(__linux__)
#error "for Android"
#endif

#ifdef __cplusplus
#define ORTC_ANDROID_ASSERT static_assert
extern "C" {
#else
#define ORTC_ANDROID_ASSERT _Static_assert
#endif

typedef long ssize_t, off_t, time_t, pthread_t;
typedef unsigned mode_t;

/* errno.h */
int *__errno(void);
#define errno (*__errno())
#define EINTR 4
#define EEXIST 17

/* fcntl.h, unistd.h */
#define O_RDONLY 0
#define O_WRONLY 1
#define O_CREAT 0100
#define O_EXCL 0200
#define O_NONBLOCK 04000
#define O_CLOEXEC 02000000
int open(const char *path, int flags, ...);
int close(int file);
ssize_t write(int file, const void *data, size_t bytes);
int fsync(int file);
int unlink(const char *path);
long syscall(long number, ...);
#define _SC_NPROCESSORS_ONLN 97
long sysconf(int name);

/* sys/syscall.h, linux/futex.h */
#if defined(__aarch64__)
#define SYS_futex 98
#elif defined(__arm__)
#define SYS_futex 240
#else
#define SYS_futex 202
#endif
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_PRIVATE_FLAG 128

/* sys/stat.h: the mode and the size, at their places */
struct stat {
#if defined(__x86_64__)
  uint64_t before[3];
  uint32_t st_mode;
  uint32_t between[5];
  int64_t st_size, after[11];
#else
  uint64_t before[2];
  uint32_t st_mode;
  uint32_t between[7];
  int64_t st_size, after[9];
#endif
};
#if defined(__x86_64__)
ORTC_ANDROID_ASSERT(offsetof(struct stat, st_mode) == 24 && sizeof(struct stat) == 144, "struct stat");
#else
ORTC_ANDROID_ASSERT(offsetof(struct stat, st_mode) == 16 && sizeof(struct stat) >= 104, "struct stat");
#endif
ORTC_ANDROID_ASSERT(offsetof(struct stat, st_size) == 48, "struct stat");
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
int fstat(int file, struct stat *about);

/* sys/mman.h */
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 0x20
#define MAP_FAILED ((void *)-1)
#define MADV_DONTNEED 4
#define MADV_HUGEPAGE 14
void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t offset);
int munmap(void *memory, size_t bytes);
int mprotect(void *memory, size_t bytes, int access);
int madvise(void *memory, size_t bytes, int advice);

/* sys/auxv.h */
#define AT_HWCAP 16
unsigned long getauxval(unsigned long type);

/* string.h, beside runtime/freestanding's */
char *strrchr(const char *text, int character);

/* stdio.h, stdlib.h */
int snprintf(char *text, size_t most, const char *format, ...);
int rename(const char *from, const char *to);
void *malloc(size_t bytes);
void free(void *memory);
int posix_memalign(void **memory, size_t alignment, size_t bytes);

/* pthread.h, sched.h, time.h */
int pthread_create(pthread_t *thread, const void *attributes, void *(*function)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
int sched_yield(void);
struct timespec {
  time_t tv_sec;
  long tv_nsec;
};
#define CLOCK_MONOTONIC 1
int clock_gettime(int clock, struct timespec *time);

#ifdef __cplusplus
}
#endif
