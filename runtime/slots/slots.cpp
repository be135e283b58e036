// Two slots that are written in turn.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/slots.h"

#include <stddef.h>
#include <string.h>

#include "runtime/slots/slot.h"

namespace ortc::slots {
namespace {

// What can go wrong: a status, and a text with '#' for each number. Pointers to these come back from what fails.
#define ORTC_SLOTS_INCOMPLETE "\1the size or a callback is missing"
#define ORTC_SLOTS_UNITS "\1program units of # bytes do not fit erase units of #"
#define ORTC_SLOTS_NOT_WHOLE "\1slots are not whole erase units of # bytes"
#define ORTC_SLOTS_OVERLAP "\1slots at # and # overlap"
#define ORTC_SLOTS_DAMAGED "\5neither slot holds a whole state"
#define ORTC_SLOTS_BUFFER "\6a buffer of # bytes is too small: # are needed"
#define ORTC_SLOTS_READ "\7cannot read at #"
#define ORTC_SLOTS_PROGRAM "\7cannot program at #"
#define ORTC_SLOTS_ERASE "\7cannot erase at #"
#define ORTC_SLOTS_DIFFERS "\7what was programmed at # reads differently"
#define ORTC_SLOTS_EMPTY "\10both slots are empty"
#define ORTC_SLOTS_SIZE "\11slots of # bytes are too small: # are needed"
#define ORTC_SLOTS_REFUSED "\14not accepted"
#define ORTC_SLOTS_OTHER "\0the slot at # is damaged"
static_assert(ORTC_E_ARGUMENT == 1 && ORTC_E_HASH == 5 && ORTC_E_MEMORY == 6 && ORTC_E_IO == 7 &&
              ORTC_E_NOT_FOUND == 010 && ORTC_E_SHAPE == 011 && ORTC_E_STATE == 014);

/// Of two numbers that count and wrap around.
bool isNewer(uint32_t a, uint32_t b) { return (int32_t)(a - b) > 0; }

/// Both slots, with the content of their data where it matters.
struct Pair {
  Slot slot[2];
  uint32_t last;   ///< the newest that was committed, whole or not
  uint32_t newest; ///< the newest whole one; 2: there is none

  void find(const ortc_slots &s) {
    newest = 2;
    for (int i = 0; i < 2; i++)
      slot[i] = look(s, s.offset[i]);
    last = slot[0].content != Content::Whole ||
           (slot[1].content == Content::Whole && isNewer(slot[1].record.sequence, slot[0].record.sequence));
    for (uint32_t i = 0, which = last; i < 2 && newest == 2; i++, which ^= 1) {
      Slot &one = slot[which];
      if (one.content == Content::Whole && isWhole(s, one))
        newest = which;
      else if (one.content == Content::Whole)
        one.content = Content::Damaged;
    }
  }
};

int32_t countBytes(void *context, const void *, size_t bytes) {
  *(uint64_t *)context += bytes;
  return 0;
}

int32_t putBytes(void *context, const void *data, size_t bytes) {
  Writer &writer = *(Writer *)context;
  writer.put(data, bytes);
  return writer.isBroken;
}

/// A call. Its functions return what went wrong, or nullptr, and leave the numbers of the text.
struct Call {
  const ortc_slots &s;
  ortc_session *session;
  const ortc_metadata *metadata;
  size_t count;
  uint64_t first, second;
  ortc_status status; ///< of a checkpoint function, whose text has none in front
  Pair pair;

  const char *checkGeometry();
  const char *findNeeded();
  const char *save();
  const char *load(void *buffer, size_t bytes, ortc_load_info *info);
  ortc_status finish(const char *text, ortc_message *message);

  const char *write(ortc_sink_fn sink, void *context) {
    status = ortc_checkpoint_write(session, sink, context, metadata, count);
    return said();
  }
  const char *said() { return status ? ortc_session_message(session) : nullptr; }
};

const char *Call::checkGeometry() {
  if (s.size < sizeof s || !s.program || !s.erase || (!s.read && !s.mapped))
    return ORTC_SLOTS_INCOMPLETE;
  first = s.program_bytes;
  second = s.erase_bytes;
  if (!first || first > ORTC_SLOTS_MAX_PROGRAM_BYTES || !second || s.erase_bytes % s.program_bytes)
    return ORTC_SLOTS_UNITS;
  first = second;
  if (s.slot_bytes <= dataAt(s)) // has no room for any data
    return ORTC_SLOTS_NOT_WHOLE;
  uint32_t a = s.offset[0], b = s.offset[1];
  if (a % s.erase_bytes || b % s.erase_bytes || s.slot_bytes % s.erase_bytes)
    return ORTC_SLOTS_NOT_WHOLE;
  first = a;
  second = b;
  return (a < b ? b - a : a - b) < s.slot_bytes || (a > b ? a : b) > ~s.slot_bytes ? ORTC_SLOTS_OVERLAP
                                                                                   : nullptr;
}

/// `second`: the bytes of a slot.
const char *Call::findNeeded() {
  if (const char *error = checkGeometry())
    return error;
  second = dataAt(s);
  const char *error = write(countBytes, &second);
  second = roundUp(second, s.erase_bytes);
  return error;
}

const char *Call::save() {
  if (const char *error = findNeeded())
    return error;
  first = s.slot_bytes;
  if (second > first)
    return ORTC_SLOTS_SIZE;
  if (s.accept && s.accept(s.context, session))
    return ORTC_SLOTS_REFUSED;

  pair.find(s);
  // What is whole and newest stays; with none, what was committed last.
  uint32_t target = (pair.newest < 2 ? pair.newest : pair.last) ^ 1, offset = s.offset[target];
  for (uint32_t at = 0; at < second; at += s.erase_bytes) {
    first = offset + at;
    if (s.erase(s.context, offset + at))
      return ORTC_SLOTS_ERASE;
  }

  Writer writer(s);
  writer.begin(offset + dataAt(s), offset + s.slot_bytes);
  const char *error = write(putBytes, &writer);
  if (error && !writer.isBroken)
    return error;
  Slot slot = {offset, Content::Whole, {kMagic, pair.slot[pair.last].record.sequence + 1, 0, writer.crc, 0}};
  slot.record.bytes = writer.at + writer.held - offset - dataAt(s);
  writer.finish();
  first = offset;
  if (!writer.isBroken) {
    if (!isWhole(s, slot))
      return ORTC_SLOTS_DIFFERS;
    slot.record.crc = crc32c(0, &slot.record, offsetof(Record, crc));
    writer.begin(offset, offset + dataAt(s));
    writer.put(&slot.record, sizeof slot.record);
    writer.finish();
    writer.put(&kCommit, sizeof kCommit);
    writer.finish();
  }
  if (writer.isBroken) {
    status = ORTC_OK; // that the sink failed is not what is to be said
    first = writer.at;
    return ORTC_SLOTS_PROGRAM;
  }
  Slot seen = look(s, offset);
  return memcmp(&seen, &slot, sizeof seen) ? ORTC_SLOTS_DIFFERS : nullptr;
}

const char *Call::load(void *buffer, size_t bytes, ortc_load_info *info) {
  if (const char *error = checkGeometry())
    return error;
  pair.find(s);
  if (pair.newest > 1)
    return pair.slot[0].content == Content::Damaged || pair.slot[1].content == Content::Damaged
               ? ORTC_SLOTS_DAMAGED
               : ORTC_SLOTS_EMPTY;
  const Slot &slot = pair.slot[pair.newest], &other = pair.slot[pair.newest ^ 1];
  const void *data = buffer;
  uint32_t offset = slot.offset + dataAt(s);
  if (s.mapped) {
    data = (const uint8_t *)s.mapped + offset;
  } else {
    first = bytes;
    second = slot.record.bytes;
    if (first < second)
      return ORTC_SLOTS_BUFFER;
    first = offset;
    if (!read(s, offset, buffer, slot.record.bytes))
      return ORTC_SLOTS_READ;
  }
  status = ortc_checkpoint_read(session, data, slot.record.bytes, info);
  first = other.offset;
  return !status && other.content == Content::Damaged ? ORTC_SLOTS_OTHER : said();
}

ortc_status Call::finish(const char *text, ortc_message *message) {
  bool isOwn = text && !status; // else a checkpoint function's, in which '#' is a '#'
  if (isOwn)
    status = *text++;
  if (!message)
    return status;
  char *at = message->text, *end = at + sizeof message->text - 1;
  for (; text && *text && at < end; text++) {
    *at++ = *text;
    if (*text != '#' || !isOwn)
      continue;
    char digits[20];
    uint32_t digit = 0;
    do
      digits[digit++] = (char)('0' + first % 10);
    while (first /= 10);
    for (at--; digit && at < end;)
      *at++ = digits[--digit];
    first = second;
  }
  *at = 0;
  return status;
}

} // namespace
} // namespace ortc::slots

using namespace ortc::slots;

extern "C" {

ortc_status ortc_slots_needed(const ortc_slots *slots, ortc_session *session, const ortc_metadata *metadata,
                              size_t count, uint64_t *bytes, ortc_message *message) {
  Call call = {*slots, session, metadata, count, 0, 0, ORTC_OK, {}};
  const char *error = call.findNeeded();
  *bytes = call.second;
  return call.finish(error, message);
}

ortc_status ortc_slots_save(const ortc_slots *slots, ortc_session *session, const ortc_metadata *metadata,
                            size_t count, ortc_message *message) {
  Call call = {*slots, session, metadata, count, 0, 0, ORTC_OK, {}};
  return call.finish(call.save(), message);
}

ortc_status ortc_slots_load(const ortc_slots *slots, ortc_session *session, void *buffer, size_t bytes,
                            ortc_load_info *info, ortc_message *message) {
  Call call = {*slots, session, nullptr, 0, 0, 0, ORTC_OK, {}};
  return call.finish(call.load(buffer, bytes, info), message);
}
}
