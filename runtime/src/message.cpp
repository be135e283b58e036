// Error texts and the small helpers everything uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <stdlib.h>

namespace ortc {

// Not vsnprintf: on a microcontroller that one is larger than the whole runtime.
void formatText(char *text, size_t capacity, const char *format, va_list arguments) {
  size_t length = 0;
  auto put = [&](char c) {
    if (length + 1 < capacity)
      text[length++] = c;
  };
  for (; *format; format++) {
    if (*format != '%') {
      put(*format);
      continue;
    }
    format++;
    if (*format == 's') {
      for (const char *s = va_arg(arguments, const char *); *s; s++)
        put(*s);
      continue;
    }
    uint64_t value = va_arg(arguments, uint64_t);
    if (*format == 'd' && (int64_t)value < 0) {
      put('-');
      value = 0 - value;
    }
    char digits[20];
    int count = 0;
    do
      digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
      put(digits[--count]);
  }
  text[length] = 0;
}

ortc_status fail(ortc_message *message, ortc_status status, const char *format, ...) {
  if (message) {
    va_list arguments;
    va_start(arguments, format);
    formatText(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
  }
  return status;
}

void *allocate(const ortc_host &host, size_t bytes) {
  bytes = bytes ? bytes : 1;
  if (host.allocate)
    return host.allocate(host.context, bytes, ORTC_ALIGNMENT);
  void *memory = nullptr;
  return posix_memalign(&memory, ORTC_ALIGNMENT, bytes) ? nullptr : memory;
}

void release(const ortc_host &host, void *memory, size_t bytes) {
  if (!memory)
    return;
  if (!host.allocate)
    free(memory);
  else if (host.release)
    host.release(host.context, memory, bytes ? bytes : 1);
}

} // namespace ortc

extern "C" {

uint32_t ortc_abi_version(void) { return ORTC_ABI_VERSION; }

const char *ortc_status_name(ortc_status status) {
  // One string with fixed places: a table of pointers would need relocations.
  static const char kNames[][11] = {"ok",    "argument",   "format", "version",   "target",
                                    "hash",  "memory",     "io",     "not found", "shape",
                                    "range", "not finite", "state",  "internal"};
  return status >= 0 && status <= ORTC_E_INTERNAL ? kNames[status] : "unknown";
}
}
