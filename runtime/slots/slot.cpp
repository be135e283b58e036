// One slot in flash: how it is laid out, written, and found to be whole.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/slots/slot.h"

#include <stddef.h>
#include <string.h>

namespace ortc::slots {

/// What four bits that leave the register add to it: the polynomial 0x1edc6f41, its bits in reverse.
static const uint32_t kHalfByte[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                       0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes) {
  const uint8_t *p = (const uint8_t *)data;
  crc = ~crc;
  for (; bytes; bytes--) {
    crc ^= *p++;
    crc = crc >> 4 ^ kHalfByte[crc & 15];
    crc = crc >> 4 ^ kHalfByte[crc & 15];
  }
  return ~crc;
}

bool read(const ortc_slots &s, uint32_t offset, void *data, uint32_t bytes) {
  if (!s.mapped)
    return !s.read(s.context, offset, data, bytes);
  memcpy(data, (const uint8_t *)s.mapped + offset, bytes);
  return true;
}

Slot look(const ortc_slots &s, uint32_t offset) {
  Slot slot = {offset, Content::Damaged, {}};
  uint32_t commit;
  if (!read(s, offset, &slot.record, sizeof slot.record) ||
      !read(s, offset + commitAt(s), &commit, sizeof commit))
    return slot;
  const Record &r = slot.record;
  if (commit != kCommit)
    slot.content = Content::Nothing;
  else if (r.magic == kMagic && r.crc == crc32c(0, &r, offsetof(Record, crc)) &&
           r.bytes <= s.slot_bytes - dataAt(s))
    slot.content = Content::Whole;
  return slot;
}

bool isWhole(const ortc_slots &s, const Slot &slot) {
  uint8_t part[64];
  uint32_t crc = 0, at = slot.offset + dataAt(s);
  for (uint32_t left = slot.record.bytes, count; left; left -= count, at += count) {
    count = left < sizeof part ? left : (uint32_t)sizeof part;
    if (!read(s, at, part, count))
      return false;
    crc = crc32c(crc, part, count);
  }
  return crc == slot.record.dataCrc;
}

void Writer::begin(uint32_t first, uint32_t last) {
  at = first;
  end = last;
  held = crc = 0;
  isBroken = false;
}

void Writer::put(const void *data, size_t bytes) {
  crc = crc32c(crc, data, bytes);
  for (const uint8_t *p = (const uint8_t *)data; bytes && !isBroken; bytes--) {
    unit[held++] = *p++;
    if (held < s.program_bytes)
      continue;
    isBroken = at == end || s.program(s.context, at, unit);
    at += isBroken ? 0 : held;
    held = 0;
  }
}

void Writer::finish() {
  while (held && !isBroken) {
    uint32_t sum = crc;
    put("\xff", 1);
    crc = sum;
  }
}

} // namespace ortc::slots
