// Error texts and the small helpers everything uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <stdlib.h>

namespace ortc {

// Not vsnprintf: on a microcontroller that one is larger than the whole runtime.
ortc_status fail(ortc_message *message, const char *format, ...) {
  ortc_status status = *format;
  if (!message)
    return status;
  va_list arguments;
  va_start(arguments, format);
  char *at = message->text, *end = at + sizeof message->text - 1;
  while (*++format) {
    char digits[24], *text = digits + sizeof digits - 1;
    *text = 0;
    if (*format != '%') {
      *--text = *format;
    } else if (*++format == 's') {
      text = va_arg(arguments, char *);
    } else {
      uint64_t value = va_arg(arguments, uint64_t);
      bool isNegative = *format == 'd' && (int64_t)value < 0;
      value = isNegative ? 0 - value : value;
      do
        *--text = (char)('0' + value % 10);
      while (value /= 10);
      if (isNegative)
        *--text = '-';
    }
    while (*text && at < end)
      *at++ = *text++;
  }
  *at = 0;
  va_end(arguments);
  return status;
}

void *allocate(const ortc_host &host, size_t bytes) {
  if (host.allocate)
    return host.allocate(host.context, bytes + !bytes, ORTC_ALIGNMENT);
  void *memory = nullptr;
  return posix_memalign(&memory, ORTC_ALIGNMENT, bytes + !bytes) ? nullptr : memory;
}

void release(const ortc_host &host, void *memory, size_t bytes) {
  if (!host.allocate)
    free(memory);
  else if (memory && host.release)
    host.release(host.context, memory, bytes + !bytes);
}

ortc_status copyStructure(void *target, const void *source, uint32_t bytes) {
  uint32_t size;
  if (!target)
    return ORTC_E_ARGUMENT;
  memcpy(&size, target, sizeof size);
  if (size < sizeof size)
    return ORTC_E_ARGUMENT;
  memcpy((uint8_t *)target + sizeof size, (const uint8_t *)source + sizeof size,
         (size < bytes ? size : bytes) - sizeof size);
  return ORTC_OK;
}

} // namespace ortc

extern "C" {

uint32_t ortc_abi_version(void) { return ORTC_ABI_VERSION; }

const char *ortc_status_name(ortc_status status) {
  // Fixed places: a table of pointers would need relocations.
  static const char kNames[][11] = {"ok",    "argument",   "format", "version",   "target",
                                    "hash",  "memory",     "io",     "not found", "shape",
                                    "range", "not finite", "state",  "internal",  "unknown"};
  return kNames[(uint32_t)status <= ORTC_E_INTERNAL ? (uint32_t)status : ORTC_E_INTERNAL + 1];
}
}
