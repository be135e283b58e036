// Reading checkpoints: safetensors files, ours and those of others. The header is walked two times, first to
// check everything, then to take it, so a bad file changes nothing. The walk checks bounds both times,
// because a file that is mapped may change in between. SPDX-License-Identifier: Apache-2.0 WITH
// LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {
namespace {

/// A string of the file, decoded. `isCut`: longer than the buffer, which then holds its beginning.
struct Text {
  char text[kTextLimit];
  size_t length;
  bool isCut;
  uint64_t hash; ///< of all of it

  bool is(const char *other) const { return !strcmp(text, other); }
};

/// The subset of JSON that safetensors headers use. After an error nothing matches any more.
struct Json {
  const char *at, *end;
  bool isBad;

  __attribute__((noinline)) bool has(char c) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
      at++;
    if (isBad || at >= end || *at != c)
      return false;
    at++;
    return true;
  }
  void need(char c) { isBad |= !has(c); }
  uint8_t next() { return at < end ? (uint8_t)*at++ : 0; }
  /// Digits of base 16; all of them, if there are that many.
  uint64_t hex(int count) {
    uint64_t value = 0;
    while (count--) {
      uint8_t c = next(), digit = (uint8_t)(c - '0');
      if (digit > 9)
        digit = (uint8_t)((c | 0x20) - 'a' + 10);
      isBad |= digit > 15 || (digit > 9 && c < 'A');
      value = value << 4 | (digit & 15);
    }
    return value;
  }
  void string(Text &text) {
    text.length = 0;
    text.isCut = false;
    text.hash = kHashSeed;
    need('"');
    while (!isBad) {
      uint32_t code = next();
      if (code == '"')
        break;
      isBad |= code < 0x20;
      bool isEscape = code == '\\';
      if (isEscape) {
        static const char kEscapes[] = "bfnrt\"\\/", kCodes[] = "\b\f\n\r\t\"\\/";
        char escape = (char)next();
        if (escape == 'u') {
          code = (uint32_t)hex(4);
          if (code >> 10 == 0x36 && next() == '\\' && next() == 'u') // a surrogate pair
            code = 0x10000 + ((code & 0x3ff) << 10) + ((uint32_t)hex(4) & 0x3ff);
          isBad |= !code;
        } else {
          const char *found = escape ? strchr(kEscapes, escape) : nullptr;
          isBad |= !found;
          code = found ? (uint32_t)kCodes[found - kEscapes] : 0;
        }
      }
      // Bytes of the file are UTF-8 already.
      char bytes[4];
      int count = 0;
      if (!isEscape || code < 0x80) {
        bytes[count++] = (char)code;
      } else {
        int shift = code < 0x800 ? 6 : code < 0x10000 ? 12 : 18;
        bytes[count++] = (char)((0xf00 >> (shift / 6)) | code >> shift);
        while (shift -= 6, shift >= 0)
          bytes[count++] = (char)(0x80 | (code >> shift & 63));
      }
      text.hash = hashName(text.hash, bytes, (size_t)count);
      if (text.length + (size_t)count >= sizeof text.text)
        text.isCut = true;
      else
        for (int i = 0; i < count; i++)
          text.text[text.length++] = bytes[i];
    }
    text.text[text.length] = 0;
  }
  uint64_t number() {
    uint64_t value = 0;
    has(' '); // only skips
    const char *first = at;
    for (; at < end && (uint8_t)(*at - '0') < 10 && at - first < 19; at++)
      value = value * 10 + (uint64_t)(*at - '0');
    isBad |= at == first;
    return value;
  }
};

struct Checkpoint {
  ortc_session *s;
  const uint8_t *file;
  size_t fileBytes;
  ortc_load_info info;
  Json json;
  Text key, value;
  const uint8_t *data; ///< behind the header
  uint64_t dataBytes, claimedBytes, sum, expectedSum;
  bool hasSum;

  ortc_status walk(bool isTaking);
  ortc_status walkMetadata(bool isTaking);
  ortc_status walkTensor(bool isTaking);
  ortc_status checkComplete();
  ortc_status refuse(const char *format) { return fail(&s->message, format, key.text); }
};

ortc_status Checkpoint::walkMetadata(bool isTaking) {
  json.need('{');
  if (json.has('}'))
    return ORTC_OK;
  do {
    json.string(key);
    json.need(':');
    json.string(value);
    bool isOurs = !strncmp(key.text, "ortc.", 5);
    if (isTaking && info.metadata && !isOurs && !key.isCut && !value.isCut)
      info.metadata(info.metadata_context, key.text, value.text);
    if (key.is("ortc.format") && !value.is("1"))
      return fail(&s->message, E_VERSION "the checkpoint has format '%s' but this runtime reads format 1",
                  value.text);
    if (key.is("ortc.checksum")) {
      Json digits = {value.text, value.text + value.length, value.length != 16};
      expectedSum = digits.hex(16);
      hasSum = true;
      json.isBad |= digits.isBad;
    }
  } while (json.has(','));
  json.need('}');
  return ORTC_OK;
}

/// One tensor, whose name is in `key`.
ortc_status Checkpoint::walkTensor(bool isTaking) {
  char dtype[5] = "";
  uint64_t shape[ORTC_MAX_RANK], range[2] = {1, 0};
  uint32_t rank = ORTC_NONE;
  json.need('{');
  do {
    json.string(value);
    json.need(':');
    if (value.is("dtype")) {
      json.string(value);
      memcpy(dtype, value.text, 4);
      dtype[4] = (char)(value.length > 4);
      continue;
    }
    bool isShape = value.is("shape");
    uint64_t *numbers = isShape ? shape : range;
    uint32_t count = 0, capacity = isShape ? ORTC_MAX_RANK : 2;
    json.isBad |= !isShape && !value.is("data_offsets");
    json.need('[');
    if (!json.has(']')) {
      do {
        uint64_t n = json.number();
        if (count < capacity)
          numbers[count] = n;
        count++;
      } while (json.has(','));
      json.need(']');
    }
    if (isShape)
      rank = count;
    else
      json.isBad |= count != 2;
  } while (json.has(','));
  json.need('}');
  if (json.isBad)
    return refuse(E_FORMAT "the checkpoint's header is malformed at tensor '%s'");
  if (range[0] > range[1] || range[1] > dataBytes)
    return refuse(E_FORMAT "tensor '%s' reaches past the end of the checkpoint");
  uint64_t bytes = range[1] - range[0];
  if (!isTaking) {
    claimedBytes += bytes; // may wrap only in a file that claims its bytes many times: refused all the same
    sum += hashData(key.hash, data + range[0], bytes);
  }
  uint32_t index = key.isCut ? ORTC_NONE : findTensor(s->program, key.text);
  if (index == ORTC_NONE || !isCheckpointed(s->program->tensor(index))) {
    info.ignored += !isTaking;
    return ORTC_OK;
  }
  const ortc_file_tensor &t = s->program->tensor(index);
  const char *expected = safetensorsDtype(t.dtype);
  bool isSame = bytes == t.bytes && rank == t.rank && !dtype[4] && !strncmp(dtype, expected, 4) &&
                !memcmp(shape, t.dims, rank * sizeof *shape);
  if (!isSame)
    return refuse(E_SHAPE "'%s' has another shape or dtype in the checkpoint than in the artifact");
  if (isTaking) {
    View view = storedView(s, t);
    transfer(view, 0, view.count, (uint8_t *)data + range[0], false);
    return ORTC_OK;
  }
  if (s->seen[index]++)
    return refuse(E_FORMAT "the checkpoint has '%s' twice");
  info.loaded++;
  return ORTC_OK;
}

ortc_status Checkpoint::walk(bool isTaking) {
  uint64_t headerBytes = ~(uint64_t)0;
  key.text[0] = 0;
  if (fileBytes >= 8)
    memcpy(&headerBytes, file, 8);
  if (fileBytes < 8 || headerBytes > fileBytes - 8)
    return refuse(E_FORMAT "the checkpoint's header reaches past the end of the file");
  data = file + 8 + headerBytes;
  dataBytes = fileBytes - 8 - headerBytes;
  json = {(const char *)file + 8, (const char *)data, false};
  json.need('{');
  if (!json.has('}')) {
    do {
      json.string(key);
      json.need(':');
      if (json.isBad)
        break;
      if (ortc_status status = key.is("__metadata__") ? walkMetadata(isTaking) : walkTensor(isTaking))
        return status;
    } while (json.has(','));
    json.need('}');
  }
  json.has(' '); // only skips
  return json.isBad || json.at != json.end ? refuse(E_FORMAT "the checkpoint's header is malformed")
                                           : ORTC_OK;
}

/// Whether everything is there that has to be; decides about fresh state.
ortc_status Checkpoint::checkComplete() {
  const ortc_program *p = s->program;
  bool isStateAbsent = false, isStatePresent = false;
  const char *absent = nullptr;
  for (uint32_t i = 0; i < p->tensorCount(); i++) {
    const ortc_file_tensor &t = p->tensor(i);
    bool isState = t.role == ORTC_ROLE_STATE && !(t.flags & ORTC_TENSOR_IN_MODEL), isSeen = s->seen[i];
    isStatePresent |= isState && isSeen;
    if (isSeen || !isCheckpointed(t) || t.role == ORTC_ROLE_SCALAR)
      continue;
    absent = p->name(t);
    if (!isState)
      return fail(&s->message, E_NOT_FOUND "the checkpoint has no '%s'", absent);
    isStateAbsent = true;
  }
  if (isStateAbsent && isStatePresent)
    return fail(&s->message,
                E_NOT_FOUND "the checkpoint has only part of the optimizer's state: there is no '%s'",
                absent);
  info.fresh_state = isStateAbsent;
  if (claimedBytes != dataBytes)
    return refuse(E_FORMAT "the checkpoint's tensors do not add up to its data");
  return hasSum && sum != expectedSum ? refuse(E_HASH "the checkpoint's data does not match its checksum")
                                      : ORTC_OK;
}

} // namespace
} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_read(ortc_session *session, const void *data, size_t bytes,
                                 ortc_load_info *info) {
  Checkpoint checkpoint;
  memset((void *)&checkpoint, 0, sizeof checkpoint);
  checkpoint.s = session;
  checkpoint.file = (const uint8_t *)data;
  checkpoint.fileBytes = bytes;
  checkpoint.info = copyIn(info);
  checkpoint.info.loaded = checkpoint.info.ignored = 0;
  memset(session->seen, 0, session->program->tensorCount());
  ortc_status status = checkpoint.walk(false);
  if (!status)
    status = checkpoint.checkComplete();
  if (status)
    return status;
  session->gradients = ORTC_NONE;
  if (checkpoint.info.fresh_state)
    ortc_session_reset(session);
  status = checkpoint.walk(true);
  if (!status && info)
    copyOut(info, checkpoint.info);
  return status;
}

ortc_status ortc_checkpoint_load(ortc_session *session, const char *path, ortc_load_info *info) {
  MappedFile file;
  ortc_status status = mapFile(path, file, &session->message);
  if (status)
    return status;
  status = ortc_checkpoint_read(session, file.data, file.bytes, info);
  unmapFile(file);
  return status;
}
}
