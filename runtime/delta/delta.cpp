// Deltas of a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ortc_checkpoint_write gives the session's tensors, one after the other in the order of the artifact's table; they are
// taken a block at a time, so that no memory is needed. The first walk makes the checksums, the second one writes the
// differences and the third one the scales of int8 blocks.
#include "ortc/delta.h"

#include <string.h>

#include "runtime/delta/base.h"
#include "runtime/delta/quantize.h"
#include "runtime/delta/texts.h"

namespace ortc::delta {
namespace {

/// The checksum of a tensor, as checkpoints have it (runtime/src/checkpoint_write.cpp).
struct Hash {
  uint64_t hash, word;
  uint32_t held;

  void name(const char *text) {
    for (; *text; text++)
      hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
  }
  void begin(const char *tensor, const char *suffix) {
    hash = 0xcbf29ce484222325u;
    word = held = 0;
    name(tensor);
    name(suffix);
  }
  void mix() {
    hash ^= word;
    hash = (hash << 29 | hash >> 35) * 0x9e3779b97f4a7c15u;
    word = held = 0;
  }
  void put(const void *data, uint32_t bytes) {
    for (const uint8_t *p = (const uint8_t *)data; bytes; bytes--) {
      word |= (uint64_t)*p++ << 8 * held++;
      if (held == 8)
        mix();
    }
  }
  uint64_t end() {
    if (held)
      mix();
    return hash;
  }
};

uint64_t shown(uint64_t sum) { return sum >> 4 | (uint64_t)1 << 60; }

enum class Walk : uint32_t { Sum, Differences, Scales };

double widen(uint8_t type, const uint8_t *data) {
  double wide = 0;
  float single = 0;
  uint16_t half = 0;
  uint32_t bits;
  if (type == 11)
    return memcpy(&wide, data, 8), wide;
  if (type == 1)
    return memcpy(&single, data, 4), single;
  memcpy(&half, data, 2);
  bits = (uint32_t)half << 16;
  if (type == 10) { // float16: its exponent is moved by a multiplication
    bits = (half & 0x8000u) << 16 | (half & 0x7fffu) << 13;
    memcpy(&single, &bits, 4);
    return (half & 0x7c00) == 0x7c00 ? __builtin_inf() : single * 5.192296858534828e33f; // 2^112
  }
  return memcpy(&single, &bits, 4), single;
}

struct Writer {
  const ortc_delta &delta;
  const ortc_program *program;
  ortc_session *session;
  ortc_sink_fn sink;
  void *context;
  Base base;
  Walk walk;
  Failure failure;
  const char *failed; ///< the tensor
  uint64_t sum, baseSum;
  Hash hash, scaleHash, baseHash;
  // Where the walk is: the header of the checkpoint first, then its tensors.
  uint64_t headerLeft;
  uint32_t lengthBytes, number, element;
  ortc_tensor_info tensor;
  uint64_t bytesLeft, position;
  bool isTaken;
  uint32_t held; ///< bytes
  uint8_t block[kBlock * 8], before[kBlock * 8];
  // The header of the delta, on its way.
  uint64_t total;
  uint32_t textHeld;
  char text[64];

  Writer(const ortc_delta &given, const ortc_program *of, ortc_session *from, ortc_sink_fn to,
         void *toContext)
      : delta(given), program(of), session(from), sink(to), context(toContext), base(given, of) {
    failed = "";
    failure = nullptr;
    sum = baseSum = 0;
  }

  bool isInt8() const { return delta.kind == ORTC_DELTA_INT8; }
  bool has(uint32_t i, ortc_tensor_info &info);
  bool fail(Failure why) {
    failure = why;
    failed = tensor.name;
    return false;
  }
  bool send(const void *data, uint32_t bytes) {
    return !bytes || !sink(context, data, bytes) || fail(ORTC_DELTA_SINK);
  }
  bool begin();
  bool endTensor();
  bool take(const uint8_t *data, size_t bytes);
  bool process();
  bool run(Walk which);
  Failure writeAll();
  // The header.
  bool isSent;
  void put(char c);
  void flush();
  void add(const char *s);
  void add(uint64_t value);
  void quoted(const char *s, const char *suffix);
  void entry(const ortc_tensor_info &info, bool isScale, uint64_t &offset);
  void header(bool sends);
};

uint64_t countOf(const ortc_tensor_info &info) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < info.rank; i++)
    count *= (uint64_t)info.dims[i];
  return count;
}

/// The n-th tensor of the table; false behind the last one.
bool Writer::has(uint32_t i, ortc_tensor_info &info) {
  info.size = sizeof info;
  return !ortc_tensor_get(program, i, &info);
}

bool isCheckpointed(const ortc_tensor_info &info) {
  return info.role <= ORTC_ROLE_SCALAR && info.role != ORTC_ROLE_CONSTANT;
}

/// Whether a delta has it: what is trained, and running statistics.
bool isOfDelta(const ortc_tensor_info &info) {
  bool isFloat = info.dtype == 1 || info.dtype == 10 || info.dtype == 11 || info.dtype == 16;
  return isFloat && (info.role == ORTC_ROLE_PARAMETER ||
                     (info.role == ORTC_ROLE_STATE && info.flags & ORTC_TENSOR_IN_MODEL));
}

/// Goes on to the next tensor that the checkpoint has bytes of.
bool Writer::begin() {
  for (;; number++) {
    if (!has(number, tensor)) {
      bytesLeft = ~(uint64_t)0; // nothing comes
      return true;
    }
    if (isCheckpointed(tensor)) {
      isTaken = isOfDelta(tensor);
      position = held = 0;
      bytesLeft = tensor.bytes;
      uint64_t count = countOf(tensor);
      element = count ? (uint32_t)(tensor.bytes / count) : 1;
      if (isTaken && walk == Walk::Sum) {
        hash.begin(tensor.name, "");
        scaleHash.begin(tensor.name, kScales);
        baseHash.begin(tensor.name, "");
      }
      if (isTaken)
        if (Failure why = base.find(number, tensor))
          return fail(why);
      if (bytesLeft)
        return true;
      if (!endTensor())
        return false;
    }
  }
}

bool Writer::endTensor() {
  if (isTaken && walk == Walk::Sum) {
    sum += hash.end();
    sum += isInt8() ? scaleHash.end() : 0;
    baseSum += baseHash.end();
  }
  return true;
}

/// A block, the last one of a tensor may be smaller.
bool Writer::process() {
  uint32_t count = held / element;
  if (Failure why = base.read(position, count, before))
    return fail(why);
  if (walk == Walk::Sum)
    baseHash.put(before, held);
  position += count;
  held = 0;
  bool isDouble = tensor.dtype == 11;
  uint8_t *to = block; // differences are no larger than what they are of, but for narrow types
  float single[kBlock];
  for (uint32_t i = 0; i < count; i++) {
    double difference = widen(tensor.dtype, block + i * element) - widen(tensor.dtype, before + i * element);
    single[i] = (float)difference;
    double largest = isDouble && !isInt8() ? 1.7976931348623157e308 : 3.4028234663852886e38;
    if (!(difference <= largest && difference >= -largest))
      return fail(ORTC_DELTA_NOT_FINITE);
    if (isDouble)
      memcpy(to + i * 8, &difference, 8);
  }
  const void *data = isDouble ? (const void *)to : single;
  uint32_t bytes = count * (isDouble ? 8 : 4);
  float scale = 0;
  if (isInt8()) {
    scale = quantize(single, count, (int8_t *)before);
    data = before;
    bytes = count;
  }
  if (walk == Walk::Sum) {
    hash.put(data, bytes);
    scaleHash.put(&scale, 4);
    return true;
  }
  return walk == Walk::Differences ? send(data, bytes) : send(&scale, 4);
}

bool Writer::take(const uint8_t *data, size_t bytes) {
  while (bytes) {
    if (lengthBytes < 8) {
      headerLeft |= (uint64_t)*data++ << 8 * lengthBytes++;
      bytes--;
      if (lengthBytes == 8 && !headerLeft && !begin())
        return false;
      continue;
    }
    uint64_t &left = headerLeft ? headerLeft : bytesLeft;
    uint64_t step = bytes < left ? bytes : left;
    if (!headerLeft && isTaken) {
      uint32_t room = kBlock * element - held;
      step = step < room ? step : room;
      memcpy(block + held, data, step);
      held += (uint32_t)step;
    }
    bool wasHeader = headerLeft != 0;
    left -= step;
    data += step;
    bytes -= (size_t)step;
    if (wasHeader) {
      if (!headerLeft && !begin())
        return false;
      continue;
    }
    if (isTaken && (held == kBlock * element || !bytesLeft) && !process())
      return false;
    if (!bytesLeft) {
      if (!endTensor())
        return false;
      number++;
      if (!begin())
        return false;
    }
  }
  return true;
}

bool Writer::run(Walk which) {
  walk = which;
  headerLeft = lengthBytes = number = held = 0;
  bytesLeft = 0;
  auto pass = [](void *self, const void *data, size_t bytes) -> int32_t {
    return !((Writer *)self)->take((const uint8_t *)data, bytes);
  };
  return !ortc_checkpoint_write(session, pass, this, nullptr, 0) || failure || fail(ORTC_DELTA_SESSION);
}

void Writer::flush() {
  if (isSent && !failure)
    send(text, textHeld);
  textHeld = 0;
}
void Writer::put(char c) {
  text[textHeld++] = c;
  total++;
  if (textHeld == sizeof text)
    flush();
}
void Writer::add(const char *s) {
  while (*s)
    put(*s++);
}
void Writer::add(uint64_t value) {
  char digits[24], *at = digits + sizeof digits - 1;
  *at = 0;
  do
    *--at = (char)('0' + value % 10);
  while (value /= 10);
  add(at);
}
void Writer::quoted(const char *s, const char *suffix) {
  put('"');
  for (; *s; s++) {
    uint8_t c = (uint8_t)*s;
    if (c < 0x20) {
      add("\\u00");
      put((char)('0' + (c >> 4)));
      put("0123456789abcdef"[c & 15]);
      continue;
    }
    if (c == '"' || c == '\\')
      put('\\');
    put(*s);
  }
  add(suffix);
  put('"');
}

void Writer::entry(const ortc_tensor_info &info, bool isScale, uint64_t &offset) {
  uint64_t count = countOf(info);
  put(',');
  quoted(info.name, isScale ? kScales : "");
  add(":{\"dtype\":\"");
  add(isInt8() && !isScale ? "I8" : info.dtype == 11 && !isInt8() ? "F64" : "F32");
  add("\",\"shape\":[");
  uint64_t bytes = count * (isInt8() ? 1 : info.dtype == 11 ? 8 : 4);
  if (isScale) {
    count = (count + kBlock - 1) / kBlock;
    add(count);
    bytes = 4 * count;
  }
  for (uint32_t i = 0; i < info.rank && !isScale; i++) {
    if (i)
      put(',');
    add((uint64_t)info.dims[i]);
  }
  add("],\"data_offsets\":[");
  add(offset);
  put(',');
  add(offset += bytes);
  add("]}");
}

/// Counts its bytes, or sends them.
void Writer::header(bool sends) {
  isSent = sends;
  total = textHeld = 0;
  add("{\"__metadata__\":{\"ortc.format\":\"");
  add(kFormat);
  add("\",\"ortc.checksum\":\"");
  add(shown(sum));
  add("\",\"ortc.base\":\"");
  add(shown(baseSum));
  add("\"}");
  uint64_t offset = 0;
  for (uint32_t scales = 0; scales <= (uint32_t)isInt8(); scales++)
    for (uint32_t i = 0; has(i, tensor); i++)
      if (isOfDelta(tensor))
        entry(tensor, scales != 0, offset);
  put('}');
  while (total % 8)
    put(' ');
  flush();
}

Failure Writer::writeAll() {
  if (delta.size < sizeof delta || delta.kind > ORTC_DELTA_INT8)
    return ORTC_DELTA_INCOMPLETE;
  tensor.name = "";
  failure = base.open();
  if (failure || !run(Walk::Sum) || failure)
    return failure;
  header(false);
  uint64_t bytes = total;
  if (send(&bytes, 8))
    header(true);
  if (!failure && run(Walk::Differences) && !failure && isInt8())
    run(Walk::Scales);
  return failure;
}

} // namespace
} // namespace ortc::delta

using namespace ortc::delta;

extern "C" ortc_status ortc_delta_write(const ortc_delta *delta, const ortc_program *program,
                                        ortc_session *session, ortc_sink_fn sink, void *context,
                                        ortc_message *message) {
  Writer writer(*delta, program, session, sink, context);
  const char *text = writer.writeAll(), *name = writer.failed;
  ortc_status status = text ? *text++ : ORTC_OK;
  if (!message)
    return status;
  char *at = message->text, *end = at + sizeof message->text - 1;
  for (; text && *text && at < end; text++) {
    if (*text != '#') {
      *at++ = *text;
      continue;
    }
    while (*name && at < end)
      *at++ = *name++;
  }
  *at = 0;
  return status;
}
