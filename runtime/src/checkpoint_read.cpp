// Reading checkpoints: safetensors files, ours and those of others. The header is walked two times, first to
// check everything, then to take it, so a bad file changes nothing. The walk checks bounds every time,
// because a file that is mapped may change in between. SPDX-License-Identifier: Apache-2.0 WITH
// LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {
namespace {

constexpr uint64_t kMaxHeader = 100u << 20; ///< that of the safetensors reference reader

/// A string of the file, decoded. `isCut`: longer than the buffer, which then holds its beginning.
struct Text {
  char text[kTextLimit];
  size_t length;
  bool isCut;
  uint64_t hash; ///< of all of it

  void put(uint32_t byte) {
    char c = (char)byte;
    hash = hashName(hash, &c, 1);
    if (length + 1 < sizeof text)
      text[length++] = c;
    else
      isCut = true;
  }
  /// A code point as UTF-8.
  void putCode(uint32_t code) {
    if (code < 0x80)
      return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xe0 | code >> 12);
      } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 63));
      }
      put(0x80 | (code >> 6 & 63));
    }
    put(0x80 | (code & 63));
  }
};

/// The subset of JSON that safetensors headers use. After an error everything reads as empty.
struct Json {
  const char *at, *end;
  bool isBad = false;

  void skipSpace() {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
      at++;
  }
  bool has(char c) {
    skipSpace();
    if (isBad || at >= end || *at != c)
      return false;
    at++;
    return true;
  }
  void need(char c) {
    if (!has(c))
      isBad = true;
  }
  uint32_t hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
      char c = at < end ? *at++ : 0, lower = (char)(c | 0x20);
      bool isDigit = c >= '0' && c <= '9', isLetter = lower >= 'a' && lower <= 'f';
      isBad |= !isDigit && !isLetter;
      value = value << 4 | (uint32_t)(isDigit ? c - '0' : isLetter ? lower - 'a' + 10 : 0);
    }
    return value;
  }
  void string(Text &text) {
    text.length = 0;
    text.isCut = false;
    text.hash = kHashSeed;
    need('"');
    while (!isBad) {
      uint8_t c = at < end ? (uint8_t)*at++ : 0;
      if (c == '"')
        break;
      if (c < 0x20) {
        isBad = true;
      } else if (c != '\\') {
        text.put(c);
      } else {
        static const char kEscapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
        char escape = at < end ? *at++ : 0;
        if (escape == 'u') {
          uint32_t code = hex4();
          if (code >> 10 == 0x36 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') { // a surrogate pair
            at += 2;
            code = 0x10000 + ((code & 0x3ff) << 10) + (hex4() & 0x3ff);
          }
          isBad |= !code;
          text.putCode(code);
          continue;
        }
        const char *found = nullptr;
        for (const char *e = kEscapes; *e; e += 2)
          found = *e == escape ? e : found;
        if (found)
          text.put((uint8_t)found[1]);
        else
          isBad = true;
      }
    }
    text.text[text.length] = 0;
  }
  uint64_t number() {
    skipSpace();
    const char *first = at;
    uint64_t value = 0;
    while (at < end && *at >= '0' && *at <= '9' && at - first < 19)
      value = value * 10 + (uint64_t)(*at++ - '0');
    isBad |= at == first;
    return value;
  }
};

enum class Pass { Check, Take, Report };

class Checkpoint {
public:
  Checkpoint(ortc_session *session, const uint8_t *data, size_t bytes)
      : s(session), file(data), fileBytes(bytes) {}
  ortc_status load(ortc_load_info &info);

private:
  ortc_status walk(Pass pass);
  ortc_status walkMetadata(Pass pass);
  ortc_status walkTensor(Pass pass);
  ortc_status checkComplete();
  ortc_status refuse(ortc_status status, const char *format, const char *name = "") {
    return fail(&s->message, status, format, name);
  }

  ortc_session *s;
  const uint8_t *file;
  size_t fileBytes;
  Json json = {};
  Text key, value;
  const uint8_t *data = nullptr; ///< behind the header
  uint64_t dataBytes = 0, claimedBytes = 0;
  uint64_t sum = 0, expectedSum = 0;
  bool hasSum = false;
  ortc_load_info *info = nullptr;
};

ortc_status Checkpoint::walkMetadata(Pass pass) {
  json.need('{');
  if (json.has('}'))
    return ORTC_OK;
  do {
    json.string(key);
    json.need(':');
    json.string(value);
    if (pass == Pass::Report && !json.isBad && !key.isCut && !value.isCut && strncmp(key.text, "ortc.", 5))
      info->metadata(info->metadata_context, key.text, value.text);
    if (pass != Pass::Check || json.isBad)
      continue;
    if (!strcmp(key.text, "ortc.format") && strcmp(value.text, "1"))
      return refuse(ORTC_E_VERSION, "the checkpoint has format '%s' but this runtime reads format 1",
                    value.text);
    if (!strcmp(key.text, "ortc.checksum")) {
      Json digits = {value.text, value.text + value.length};
      for (int i = 0; i < 4; i++)
        expectedSum = expectedSum << 16 | digits.hex4();
      if (digits.isBad || value.length != 16)
        return refuse(ORTC_E_FORMAT, "the checkpoint's checksum is malformed");
      hasSum = true;
    }
  } while (json.has(','));
  json.need('}');
  return ORTC_OK;
}

/// One tensor, whose name is in `key`.
ortc_status Checkpoint::walkTensor(Pass pass) {
  char dtype[16] = "";
  uint64_t shape[ORTC_MAX_RANK], range[2] = {1, 0};
  uint32_t rank = ORTC_NONE;
  json.need('{');
  do {
    json.string(value);
    json.need(':');
    if (!strcmp(value.text, "dtype")) {
      json.string(value);
      memcpy(dtype, value.text, sizeof dtype - 1);
    } else {
      bool isShape = !strcmp(value.text, "shape");
      uint64_t *numbers = isShape ? shape : range;
      uint32_t count = 0, capacity = isShape ? ORTC_MAX_RANK : 2;
      json.isBad |= !isShape && strcmp(value.text, "data_offsets");
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
    }
  } while (json.has(','));
  json.need('}');
  if (json.isBad)
    return refuse(ORTC_E_FORMAT, "the checkpoint's header is malformed at tensor '%s'", key.text);
  if (range[0] > range[1] || range[1] > dataBytes)
    return refuse(ORTC_E_FORMAT, "tensor '%s' reaches past the end of the checkpoint", key.text);
  uint64_t bytes = range[1] - range[0];
  if (pass == Pass::Check) {
    claimedBytes += bytes < dataBytes ? bytes : dataBytes; // headers are short: the sum cannot wrap
    sum += hashData(key.hash, data + range[0], bytes);
  }
  uint32_t index = key.isCut ? ORTC_NONE : findTensor(s->program, key.text);
  if (index == ORTC_NONE || !isCheckpointed(s->program->tensors[index])) {
    info->ignored += pass == Pass::Check;
    return ORTC_OK;
  }
  const ortc_file_tensor &t = s->program->tensors[index];
  bool isSame = bytes == t.bytes && rank == t.rank && !strcmp(dtype, safetensorsDtype(t.dtype));
  for (uint32_t i = 0; isSame && i < rank; i++)
    isSame = shape[i] == (uint64_t)t.dims[i];
  if (!isSame)
    return refuse(ORTC_E_SHAPE, "'%s' has another shape or dtype in the checkpoint than in the artifact",
                  key.text);
  if (pass == Pass::Check) {
    if (s->seen[index]++)
      return refuse(ORTC_E_FORMAT, "the checkpoint has '%s' twice", key.text);
    info->loaded++;
  } else {
    View view = storedView(s, t);
    transfer(view, 0, view.count, (uint8_t *)data + range[0], false);
  }
  return ORTC_OK;
}

ortc_status Checkpoint::walk(Pass pass) {
  uint64_t headerBytes = 0;
  if (fileBytes < 8)
    return refuse(ORTC_E_FORMAT, "the checkpoint is too short to be a safetensors file");
  for (int i = 7; i >= 0; i--)
    headerBytes = headerBytes << 8 | file[i];
  if (headerBytes > fileBytes - 8 || headerBytes > kMaxHeader)
    return refuse(ORTC_E_FORMAT, "the checkpoint's header reaches past the end of the file");
  data = file + 8 + headerBytes;
  dataBytes = fileBytes - 8 - headerBytes;
  json = {(const char *)file + 8, (const char *)data};
  json.need('{');
  if (!json.has('}')) {
    do {
      json.string(key);
      json.need(':');
      bool isMetadata = !strcmp(key.text, "__metadata__");
      if (json.isBad)
        break;
      ortc_status status = ORTC_OK;
      if (isMetadata)
        status = walkMetadata(pass);
      else
        status = walkTensor(pass);
      if (status)
        return status;
    } while (json.has(','));
    json.need('}');
  }
  json.skipSpace();
  if (json.isBad || json.at != json.end)
    return refuse(ORTC_E_FORMAT, "the checkpoint's header is malformed");
  return ORTC_OK;
}

/// Whether everything is there that has to be; decides about fresh state.
ortc_status Checkpoint::checkComplete() {
  const ortc_program *p = s->program;
  const char *absent = nullptr;
  uint32_t present = 0;
  for (uint32_t i = 0; i < p->tensors.count; i++) {
    const ortc_file_tensor &t = p->tensors[i];
    if (isFreshable(t)) {
      present += s->seen[i];
      absent = s->seen[i] ? absent : p->string(t.name);
    } else if (!s->seen[i] && isCheckpointed(t) && t.role != ORTC_ROLE_SCALAR) {
      return refuse(ORTC_E_NOT_FOUND, "the checkpoint has no '%s'", p->string(t.name));
    }
  }
  if (absent && present)
    return refuse(ORTC_E_NOT_FOUND, "the checkpoint has only part of the optimizer's state: there is no '%s'",
                  absent);
  info->fresh_state = absent != nullptr;
  if (claimedBytes != dataBytes)
    return refuse(ORTC_E_FORMAT, "the checkpoint's tensors do not add up to its data");
  if (hasSum && sum != expectedSum)
    return refuse(ORTC_E_HASH, "the checkpoint's data does not match its checksum");
  return ORTC_OK;
}

ortc_status Checkpoint::load(ortc_load_info &result) {
  info = &result;
  memset(s->seen, 0, s->program->tensors.count);
  ortc_status status = walk(Pass::Check);
  if (!status)
    status = checkComplete();
  if (status)
    return status;
  s->gradients = ORTC_NONE;
  if (info->fresh_state)
    ortc_session_reset(s);
  status = walk(Pass::Take);
  if (!status && info->metadata)
    status = walk(Pass::Report);
  return status;
}

} // namespace
} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_read(ortc_session *session, const void *data, size_t bytes,
                                 ortc_load_info *info) {
  if (!session)
    return ORTC_E_ARGUMENT;
  if (!data && bytes)
    return fail(&session->message, ORTC_E_ARGUMENT, "no checkpoint");
  ortc_load_info own = {};
  if (info)
    memcpy(&own, info, info->size < sizeof own ? info->size : sizeof own);
  own.fresh_state = own.loaded = own.ignored = 0;
  ortc_status status = Checkpoint(session, (const uint8_t *)data, bytes).load(own);
  if (!status && info)
    copyOut(info, own);
  return status;
}

ortc_status ortc_checkpoint_load(ortc_session *session, const char *path, ortc_load_info *info) {
  if (!session)
    return ORTC_E_ARGUMENT;
  if (!path)
    return fail(&session->message, ORTC_E_ARGUMENT, "no path");
  MappedFile file;
  if (ortc_status status = mapFile(path, file, &session->message))
    return status;
  ortc_status status = ortc_checkpoint_read(session, file.data, file.bytes, info);
  unmapFile(file);
  return status;
}
}
