// Reading checkpoints: safetensors files, ours and those of others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header is walked two times, first to check everything, then to take it, so a bad file changes nothing. The walk
// checks bounds both times, because a file that is mapped may change in between. Between the two come walks
// that line the tensors up, none where they stand in the order of their data.
#include "runtime/src/internal.h"

namespace ortc {
namespace {

/// A string of the file, decoded; of one that is cut, the beginning.
struct Text {
  char text[kTextLimit];
  size_t length;
  uint64_t hash; ///< of all of it

  __attribute__((noinline)) void put(uint32_t byte) {
    hash = hashName(hash, (const char *)&byte, 1);
    text[length] = (char)byte;
    length += length + 1 < sizeof text;
  }
  bool isCut() const { return length + 1 == sizeof text; }
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
  __attribute__((noinline)) void need(char c) { isBad |= !has(c); }
  __attribute__((noinline)) uint8_t next() { return at < end ? (uint8_t)*at++ : 0; }
  void string(Text &text) {
    text.length = 0;
    text.hash = kHashSeed;
    need('"');
    while (!isBad) {
      uint32_t code = next();
      if (code == '"')
        break;
      isBad |= code < 0x20;
      if (code == '\\') {
        static const char kEscapes[] = "bfnrt\"\\/", kCodes[] = "\b\f\n\r\t\"\\/";
        code = next();
        const char *found = strchr(kEscapes, (int)code);
        if (code == 'u') { // surrogates stay as they are: nobody has such names
          code = 0;
          for (int i = 0; i < 4; i++) {
            uint32_t digit = next() - '0';
            if (digit > 9)
              digit = ((digit + '0') | 0x20) - 'a' + 10;
            isBad |= digit > 15;
            code = code << 4 | digit;
          }
          if (code >= 0x800) {
            text.put(0xe0 | code >> 12);
            text.put(0x80 | (code >> 6 & 63));
          } else if (code >= 0x80) {
            text.put(0xc0 | code >> 6);
          }
          if (code >= 0x80)
            code = 0x80 | (code & 63);
        } else {
          code = found ? (uint8_t)kCodes[found - kEscapes] : 0;
        }
        isBad |= !code;
      }
      text.put(code);
    }
    text.text[text.length] = 0;
  }
  void name(Text &text) {
    string(text);
    need(':');
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

/// What a walk is for.
enum class Purpose { LineUp, Check, Take };
/// Over a header whose tensors stand in another order than their data; more would be a way to keep a host busy.
constexpr uint32_t kMostWalks = 1000;

struct Checkpoint : Json {
  ortc_session *s;
  const uint8_t *file, *data; ///< data: behind the header
  uint64_t fileBytes, dataBytes, claimedBytes, linedUpBytes, sum;
  uint64_t expectedSum; ///< 0: none
  ortc_load_info info;
  Text key, value;

  Error walk(Purpose purpose);
  Error walkMetadata(Purpose purpose);
  Error walkTensor(Purpose purpose);
  Error lineUp();
  Error checkComplete();
};

Error Checkpoint::walkMetadata(Purpose purpose) {
  need('{');
  if (has('}'))
    return kNoError;
  do {
    name(key);
    string(value);
    bool isOurs = !strncmp(key.text, "ortc.", 5);
    if (purpose == Purpose::Take && info.metadata && !isOurs && !key.isCut() && !value.isCut())
      info.metadata(info.metadata_context, key.text, value.text);
    isBad |= key.is("ortc.format") && !value.is("1");
    if (key.is("ortc.checksum")) {
      Json digits = {value.text, value.text + value.length, false};
      expectedSum = digits.number();
      isBad |= digits.isBad || digits.at != digits.end;
    }
  } while (has(','));
  need('}');
  return kNoError;
}

/// One tensor, whose name is in `key`.
Error Checkpoint::walkTensor(Purpose purpose) {
  char dtype[6] = "";
  uint64_t shape[ORTC_MAX_RANK], range[ORTC_MAX_RANK] = {1, 0};
  uint32_t rank = ORTC_NONE;
  need('{');
  do {
    name(value);
    if (value.is("dtype")) {
      string(value);
      memcpy(dtype, value.text, sizeof dtype - 1);
      continue;
    }
    bool isShape = value.is("shape");
    uint64_t *numbers = isShape ? shape : range;
    uint32_t count = 0;
    isBad |= !isShape && !value.is("data_offsets");
    need('[');
    if (!has(']')) {
      do
        numbers[count++] = number();
      while (has(',') && count < ORTC_MAX_RANK);
      need(']');
    }
    if (isShape)
      rank = count;
    else
      isBad |= count != 2;
  } while (has(','));
  need('}');
  if (isBad)
    return kBadCheckpoint;
  uint64_t bytes = range[1] - range[0];
  claimedBytes += bytes;
  // More than there are: some are claimed twice, and not worth the time to hash them.
  if (range[0] > range[1] || range[1] > dataBytes || claimedBytes > dataBytes)
    return kCheckpointEnds;
  if (range[0] == linedUpBytes)
    linedUpBytes = range[1];
  if (purpose == Purpose::LineUp)
    return kNoError;
  if (purpose == Purpose::Check)
    sum += hashData(key.hash, data + range[0], bytes);
  uint32_t index = key.isCut() ? ORTC_NONE : findTensor(s->program, key.text);
  if (index == ORTC_NONE || !isCheckpointed(s->program->tensor(index))) {
    info.ignored++;
    return kNoError;
  }
  const ortc_file_tensor &t = s->program->tensor(index);
  const char *expected = safetensorsDtype(t.view.dtype);
  bool isSame = bytes == t.view.bytes && rank == t.view.rank && !strcmp(dtype, expected) &&
                !memcmp(shape, t.view.dims, rank * sizeof *shape);
  if (!isSame)
    return kWrongShape;
  if (purpose == Purpose::Take) {
    View view = locate(s, t.view);
    return move(s, view, 0, view.count, (uint8_t *)data + range[0], false);
  }
  if (s->seen[index]++)
    return kTensorTwice;
  info.loaded++;
  return kNoError;
}

Error Checkpoint::walk(Purpose purpose) {
  uint64_t headerBytes = ~(uint64_t)0;
  s->arguments.set(0, key.text); // whatever it is by then
  if (fileBytes >= 8)
    memcpy(&headerBytes, file, 8);
  if (fileBytes < 8 || headerBytes > fileBytes - 8)
    return kBadCheckpoint;
  data = file + 8 + headerBytes;
  dataBytes = fileBytes - 8 - headerBytes;
  claimedBytes = 0;
  at = (const char *)file + 8;
  end = (const char *)data;
  isBad = false;
  need('{');
  if (!has('}')) {
    do {
      name(key);
      if (isBad)
        break;
      if (Error error = key.is("__metadata__") ? walkMetadata(purpose) : walkTensor(purpose))
        return error;
    } while (has(','));
    need('}');
  }
  has(' '); // only skips
  return isBad || at != end ? kBadCheckpoint : kNoError;
}

/// Whether the tensors are a partition of the data: their sizes add up to it, and a chain of them covers it,
/// each beginning where another ends. Then nothing is left for the rest to overlap with. A walk finds the
/// part of the chain that stands in order: all of it in a file of ours. Without memory for a sorted table,
/// every step back costs another walk.
Error Checkpoint::lineUp() {
  uint32_t walks = kMostWalks;
  while (linedUpBytes != dataBytes || claimedBytes != dataBytes) {
    if (!walks--)
      return kBadCheckpoint;
    walk(Purpose::LineUp);
  }
  return kNoError;
}

/// Whether everything is there that has to be; decides about fresh state.
Error Checkpoint::checkComplete() {
  const ortc_program *p = s->program;
  bool isStateAbsent = false, isStatePresent = false;
  const char *absent = nullptr;
  for (uint32_t i = 0; i < p->tensorCount(); i++) {
    const ortc_file_tensor &t = p->tensor(i);
    bool isState = t.role == ORTC_ROLE_STATE && !(t.flags & ORTC_TENSOR_IN_MODEL), isSeen = s->seen[i];
    isStatePresent |= isState && isSeen;
    if (isSeen || !isCheckpointed(t) || t.role == ORTC_ROLE_SCALAR)
      continue;
    absent = p->string(t.name);
    if (!isState)
      return s->arguments.set(0, absent), kTensorAbsent;
    isStateAbsent = true;
  }
  if (isStateAbsent && isStatePresent)
    return s->arguments.set(0, absent), kTensorAbsent;
  info.fresh_state = isStateAbsent;
  if (Error error = lineUp())
    return error;
  return expectedSum && checksumOf(sum) != expectedSum ? kWrongChecksum : kNoError;
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
  Error error = checkpoint.walk(Purpose::Check);
  if (!error)
    error = checkpoint.checkComplete();
  if (error)
    return report(error, session->arguments);
  session->gradients = nullptr;
  if (checkpoint.info.fresh_state)
    ortc_session_reset(session); // where a device fails, it does so again below
  if (info) {
    info->fresh_state = checkpoint.info.fresh_state;
    info->loaded = checkpoint.info.loaded;
    info->ignored = checkpoint.info.ignored;
  }
  error = checkpoint.walk(Purpose::Take); // counts once more
  return report(error, session->arguments);
}
}
