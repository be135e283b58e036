/* What the runtime takes of the C library of macOS and iOS on arm64, so that it is built without an SDK.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Types and numbers are those of the systems' binary interface. Stands for all headers that sources name. */
#pragma once

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/freestanding/string.h"

#if !defined(__APPLE__) || !defined(__aarch64__)
#error "for Apple's systems on arm64"
#endif

#ifdef __cplusplus
#define ORTC_APPLE_ASSERT static_assert
extern "C" {
#else
#define ORTC_APPLE_ASSERT _Static_assert
#endif

typedef long ssize_t;
typedef int64_t off_t;
typedef uint16_t mode_t;

/* errno.h */
int *__error(void);
#define errno (*__error())
#define EINTR 4
#define EEXIST 17

/* fcntl.h, unistd.h */
#define O_RDONLY 0
#define O_WRONLY 1
#define O_NONBLOCK 4
#define O_CREAT 0x200
#define O_EXCL 0x800
#define O_CLOEXEC 0x1000000
int open(const char *path, int flags, ...);
int close(int file);
ssize_t write(int file, const void *data, size_t bytes);
int fsync(int file);
int unlink(const char *path);

/* sys/stat.h: the mode and the size, at their places */
struct stat {
  int32_t device;
  mode_t st_mode;
  uint16_t links;
  uint64_t between[11];
  off_t st_size;
  uint64_t after[5];
};
ORTC_APPLE_ASSERT(offsetof(struct stat, st_mode) == 4 && offsetof(struct stat, st_size) == 96 &&
                      sizeof(struct stat) == 144,
                  "struct stat");
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
int fstat(int file, struct stat *about);

/* sys/mman.h */
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 0x1000
#define MAP_FAILED ((void *)-1)
#define MADV_DONTNEED 4
void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t offset);
int munmap(void *memory, size_t bytes);
int mprotect(void *memory, size_t bytes, int access);
int madvise(void *memory, size_t bytes, int advice);

/* libkern/OSCacheControl.h */
void sys_icache_invalidate(void *begin, size_t bytes);

/* string.h, beside runtime/freestanding's; stdio.h */
char *strrchr(const char *text, int character);
int snprintf(char *text, size_t most, const char *format, ...);
int rename(const char *from, const char *to);

#ifdef __cplusplus
}
#endif
