// What a training began with: tensors of a checkpoint, or the initial weights of an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// There is no memory for a table of the checkpoint's tensors, so its header is walked for each of them.
#include "runtime/delta/base.h"

#include <string.h>

#include "runtime/delta/texts.h"

namespace ortc::delta {

bool Base::fetch(uint64_t offset, void *data, uint32_t bytes) {
  if (offset > delta.base_bytes || bytes > delta.base_bytes - offset)
    return false;
  if (!delta.base)
    return !delta.read(delta.context, offset, data, bytes);
  memcpy(data, (const uint8_t *)delta.base + offset, bytes);
  return true;
}

Failure Base::open() {
  if (isCheckpoint()) {
    if (!delta.base && !delta.read)
      return ORTC_DELTA_INCOMPLETE;
    return fetch(0, &headerBytes, 8) && headerBytes <= delta.base_bytes - 8 ? nullptr
                                                                            : ORTC_DELTA_NO_CHECKPOINT;
  }
  const void *table = nullptr, *image = nullptr;
  uint64_t bytes = 0;
  ortc_status status = ortc_program_section(program, ORTC_SECTION_TENSORS, &table, &bytes);
  rows = (const ortc_file_tensor *)table;
  if (!status)
    status = ortc_program_section(program, ORTC_SECTION_PERSISTENT, &image, &initialBytes);
  if (status == ORTC_E_NOT_FOUND) // everything begins as zero
    initialBytes = status = 0;
  initial = (const uint8_t *)image;
  return status ? ORTC_DELTA_DAMAGED : nullptr;
}

char Base::peek() {
  uint64_t end = 8 + headerBytes;
  if (at >= end || isBroken)
    return 0;
  if (at < windowAt || at - windowAt >= windowBytes) {
    windowAt = at;
    windowBytes = end - at < sizeof window ? (uint32_t)(end - at) : (uint32_t)sizeof window;
    if (!fetch(at, window, windowBytes)) {
      isBroken = true;
      return 0;
    }
  }
  return window[at - windowAt];
}

char Base::next() {
  char c = peek();
  at++;
  return c;
}

char Base::token() {
  char c;
  do
    c = next();
  while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
  return c;
}

/// The rest of a string: whether it is `expected`, and its beginning in `text`. Escapes above U+00FF match nothing.
bool Base::string(const char *expected, char *text, uint32_t room) {
  bool isEqual = true;
  uint32_t length = 0;
  for (;;) {
    char c = next();
    if (!c || c == '"')
      break;
    if (c == '\\') {
      c = next();
      static const char kEscapes[] = "bfnrt", kCodes[] = "\b\f\n\r\t";
      if (const char *found = c ? strchr(kEscapes, c) : nullptr)
        c = kCodes[found - kEscapes];
      if (c == 'u') {
        uint32_t code = 0;
        for (int i = 0; i < 4; i++) {
          char digit = next();
          code = code << 4 | (uint32_t)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
        }
        c = (char)code;
        isEqual &= code < 0x80;
      }
    }
    isEqual &= *expected == c;
    expected += *expected != 0;
    if (length + 1 < room)
      text[length++] = c;
  }
  text[length] = 0;
  return isEqual && !*expected;
}

uint64_t Base::number() {
  uint64_t value = 0;
  char c = token();
  for (; c >= '0' && c <= '9'; c = next())
    value = value * 10 + (uint64_t)(c - '0');
  at--; // what follows is not the number's
  return value;
}

/// The rest of an object or a list.
void Base::skipValue() {
  char ignored[2];
  for (uint32_t depth = 1; depth;) {
    char c = token();
    if (!c)
      return;
    if (c == '"')
      string("", ignored, sizeof ignored);
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
  }
}

static const char *nameOfType(uint8_t type) {
  return type == 1 ? "F32" : type == 11 ? "F64" : type == 10 ? "F16" : "BF16";
}

Failure Base::findInHeader(const ortc_tensor_info &tensor) {
  char word[16];
  uint64_t end = 0;
  bool isType = false;
  at = 8;
  isBroken = false;
  if (token() != '{')
    return ORTC_DELTA_NO_CHECKPOINT;
  for (;;) {
    char c = token();
    if (c == '}')
      return ORTC_DELTA_ABSENT;
    if (c == ',')
      continue;
    if (c != '"')
      return isBroken ? ORTC_DELTA_READ : ORTC_DELTA_NO_CHECKPOINT;
    bool isWanted = string(tensor.name, word, sizeof word);
    if (token() != ':' || token() != '{')
      return ORTC_DELTA_NO_CHECKPOINT;
    if (isWanted)
      break;
    skipValue();
  }
  for (char c = token(); c && c != '}'; c = token()) {
    if (c != '"')
      continue;
    string("", word, sizeof word);
    char kind = word[1]; // dtype, shape or data_offsets
    token();             // the colon
    c = token();
    if (kind == 't') {
      isType = string(nameOfType(tensor.dtype), word, sizeof word);
    } else if (kind == 'a') {
      begin = number();
      token(); // the comma
      end = number();
      token();
    } else {
      skipValue();
    }
  }
  if (!isType || end - begin != tensor.bytes || begin > delta.base_bytes - 8 - headerBytes)
    return isBroken ? ORTC_DELTA_READ : ORTC_DELTA_DIFFERS;
  begin += 8 + headerBytes;
  return nullptr;
}

Failure Base::find(uint32_t number, const ortc_tensor_info &tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; i++)
    count *= (uint64_t)tensor.dims[i];
  element = count ? (uint32_t)(tensor.bytes / count) : 1;
  if (isCheckpoint())
    return findInHeader(tensor);
  row = rows + number;
  return nullptr;
}

Failure Base::read(uint64_t first, uint32_t count, uint8_t *data) {
  if (isCheckpoint())
    return fetch(begin + first * element, data, count * element) ? nullptr : ORTC_DELTA_READ;
  const ortc_file_view &view = row->view;
  for (; count; count--, first++, data += element) {
    uint64_t place = view.offset, rest = first;
    for (uint32_t i = view.rank; i-- > 0;) {
      place += rest % (uint64_t)view.dims[i] * (uint64_t)view.strides[i];
      rest /= (uint64_t)view.dims[i];
    }
    if (place + element <= initialBytes)
      memcpy(data, initial + place, element);
    else // what an artifact does not store begins as zero
      memset(data, 0, element);
  }
  return nullptr;
}

} // namespace ortc::delta
