/* What the runtime takes of string.h, where there is no C library. Compiled with -fno-builtin: compilers make calls of
 * these functions from loops like these.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/freestanding/string.h"

void *memcpy(void *target, const void *source, size_t bytes) { return memmove(target, source, bytes); }

void *memmove(void *target, const void *source, size_t bytes) {
#if defined(__wasm_bulk_memory__)
  return __builtin_memmove(target, source, bytes); /* an instruction */
#else
  char *to = (char *)target;
  const char *from = (const char *)source;
  if (to <= from)
    for (size_t i = 0; i < bytes; i++)
      to[i] = from[i];
  else
    while (bytes--)
      to[bytes] = from[bytes];
  return target;
#endif
}

void *memset(void *target, int value, size_t bytes) {
#if defined(__wasm_bulk_memory__)
  return __builtin_memset(target, value, bytes);
#else
  for (size_t i = 0; i < bytes; i++)
    ((char *)target)[i] = (char)value;
  return target;
#endif
}

int memcmp(const void *a, const void *b, size_t bytes) {
  const unsigned char *left = (const unsigned char *)a, *right = (const unsigned char *)b;
  for (size_t i = 0; i < bytes; i++)
    if (left[i] != right[i])
      return left[i] - right[i];
  return 0;
}

size_t strlen(const char *text) {
  size_t bytes = 0;
  while (text[bytes])
    bytes++;
  return bytes;
}

char *strchr(const char *text, int character) {
  for (;; text++) {
    if (*text == (char)character)
      return (char *)text;
    if (!*text)
      return NULL;
  }
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, (size_t)-1); }

int strncmp(const char *a, const char *b, size_t most) {
  for (; most && *a && *a == *b; most--)
    a++, b++;
  return most ? (unsigned char)*a - (unsigned char)*b : 0;
}
