/* What the runtime takes of string.h, where there is no C library.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memcpy(void *target, const void *source, size_t bytes);
void *memmove(void *target, const void *source, size_t bytes);
void *memset(void *target, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
char *strchr(const char *text, int character);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t most);

#ifdef __cplusplus
}
#endif
