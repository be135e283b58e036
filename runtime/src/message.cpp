// Error texts and the small helpers everything uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

char *putDigits(uint64_t value, char *end) {
  *end = 0;
  do
    *--end = (char)('0' + value % 10);
  while (value /= 10);
  return end;
}

// Not snprintf: on a microcontroller that one is larger than the whole runtime.
ortc_status report(ortc_message *message, Error error, const Arguments *arguments) {
  if (!error)
    return ORTC_OK;
  ortc_status status = *error;
  if (!message)
    return status;
  const uint64_t *argument = arguments ? arguments->at : nullptr;
  char *at = message->text, *end = at + sizeof message->text - 1;
  while (*++error) {
    char digits[24], *text = digits + sizeof digits - 1;
    *text = 0;
    if (*error != '%') {
      *--text = *error;
    } else if (*++error == 's') {
      text = (char *)(uintptr_t)*argument++;
    } else {
      uint64_t value = *argument++;
      bool isNegative = *error == 'd' && (int64_t)value < 0;
      text = putDigits(isNegative ? 0 - value : value, text);
      if (isNegative)
        *--text = '-';
    }
    while (*text && at < end)
      *at++ = *text++;
  }
  *at = 0;
  return status;
}

void *allocate(const ortc_host &host, size_t bytes) {
  bytes += !bytes;
  return host.allocate ? host.allocate(host.context, bytes, ORTC_ALIGNMENT) : allocatePages(bytes);
}

void release(const ortc_host &host, void *memory, size_t bytes) {
  bytes += !bytes;
  if (!memory)
    return;
  if (!host.allocate)
    releasePages(memory, bytes);
  else if (host.release)
    host.release(host.context, memory, bytes);
}

void readStructure(void *own, const void *given, uint32_t bytes) {
  memset(own, 0, bytes);
  if (given)
    memcpy(own, given, *(const uint32_t *)given < bytes ? *(const uint32_t *)given : bytes);
}

} // namespace ortc

extern "C" {

uint32_t ortc_abi_version(void) { return ORTC_ABI_VERSION; }

const char *ortc_status_name(ortc_status status) {
  // One string: a table of pointers would need relocations.
  const char *name =
      "ok\0argument\0format\0version\0target\0hash\0memory\0io\0not found\0shape\0range\0not finite\0"
      "state\0internal\0unknown";
  for (uint32_t i = (uint32_t)status <= ORTC_E_INTERNAL ? (uint32_t)status : ORTC_E_INTERNAL + 1; i; i--)
    name += strlen(name) + 1;
  return name;
}
}
