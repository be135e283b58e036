// Error texts and the small helpers everything uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

#define ORTC_STATUS_ARGUMENT "\1"
#define ORTC_STATUS_FORMAT "\2"
#define ORTC_STATUS_VERSION "\3"
#define ORTC_STATUS_TARGET "\4"
#define ORTC_STATUS_HASH "\5"
#define ORTC_STATUS_MEMORY "\6"
#define ORTC_STATUS_IO "\7"
#define ORTC_STATUS_NOT_FOUND "\10"
#define ORTC_STATUS_SHAPE "\11"
#define ORTC_STATUS_RANGE "\12"
#define ORTC_STATUS_NOT_FINITE "\13"
#define ORTC_STATUS_STATE "\14"
#define ORTC_STATUS_INTERNAL "\15"

char *putDigits(uint64_t value, char *end) {
  *end = 0;
  do
    *--end = (char)('0' + value % 10);
  while (value /= 10);
  return end;
}

__attribute__((noinline)) const char *findText(const char *texts, uint32_t number) {
  for (; number; number--)
    texts += strlen(texts) + 1;
  return texts;
}

// Not snprintf: on a microcontroller that one is larger than the whole runtime.
ortc_status report(ortc_message *message, Error error, const Arguments *arguments) {
  // One string: a table of pointers would need relocations. Each text has its status in front.
  static const char kTexts[] =
#define ORTC_ERROR(name, status, text) "" ORTC_STATUS_##status text "\0"
      "\0" ORTC_ERRORS(ORTC_ERROR)
#undef ORTC_ERROR
          "?%s";
  const char *text = findText(kTexts, error);
  ortc_status result = *text;
  if (error == kTold)
    result = arguments->told;
  if (!error || !message)
    return result;
  const uint64_t *argument = arguments ? arguments->at : nullptr;
  char *at = message->text, *end = at + sizeof message->text - 1;
  while (*++text) {
    char digits[24], *part = digits + sizeof digits - 1;
    *part = 0;
    if (*text != '%') {
      *--part = *text;
    } else if (*++text == 's') {
      part = (char *)(uintptr_t)*argument++;
    } else if (*text == 'p') {
      part = (char *)findText(ORTC_PARTS, (uint32_t)*argument++);
    } else {
      uint64_t value = *argument++;
      bool isNegative = *text == 'd' && (int64_t)value < 0;
      part = putDigits(isNegative ? 0 - value : value, part);
      if (isNegative)
        *--part = '-';
    }
    for (; *part && at < end; part++) // names are the artifact's: none acts on a terminal, or ends a line
      *at++ = (unsigned char)*part < ' ' ? '?' : *part;
  }
  *at = 0;
  return result;
}

ortc_status report(Error error, Arguments &arguments) {
  return report(&arguments.message, error, &arguments);
}

Error tell(int32_t status, Arguments &arguments) {
  if (!status)
    return kNoError;
  arguments.set(0, arguments.message.text); // is copied to where it is
  arguments.told = status;
  return kTold;
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
  return ortc::findText(
      "ok\0argument\0format\0version\0target\0hash\0memory\0io\0not found\0shape\0range\0not finite\0"
      "state\0internal\0unknown",
      (uint32_t)status <= ORTC_E_INTERNAL ? (uint32_t)status : ORTC_E_INTERNAL + 1);
}
}
