// One slot in flash: how it is laid out, written, and found to be whole.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ortc/slots.h"

namespace ortc::slots {

/// A slot begins with it. Then comes the commit word, in units of its own, and then the data. The last unit of each is
/// filled up with 0xff.
struct Record {
  uint32_t magic;
  uint32_t sequence; ///< one more with every save; it wraps around
  uint32_t bytes;    ///< of the data
  uint32_t dataCrc;
  uint32_t crc; ///< of the fields before
};
constexpr uint32_t kMagic = 0x3153524f;  // "ORS1"
constexpr uint32_t kCommit = 0x54494d43; // "CMIT"

/// CRC-32C, which finds every change of three bits and every burst of 32. Power cuts and ageing cells are no attackers,
/// and a cryptographic hash would take a third of the code here. `crc`: of what comes before, at first 0.
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

inline uint64_t roundUp(uint64_t bytes, uint32_t unit) { return (bytes + unit - 1) / unit * unit; }

enum class Content : uint32_t { Nothing, Damaged, Whole }; ///< Nothing: no state was committed

/// What is known of a slot.
struct Slot {
  uint32_t offset;
  Content content; ///< Whole as long as the data are not found to be bad
  Record record;
};

/// Places in a slot.
inline uint32_t commitAt(const ortc_slots &s) { return (uint32_t)roundUp(sizeof(Record), s.program_bytes); }
inline uint32_t dataAt(const ortc_slots &s) {
  return commitAt(s) + (uint32_t)roundUp(sizeof kCommit, s.program_bytes);
}

/// False where flash cannot be read.
bool read(const ortc_slots &s, uint32_t offset, void *data, uint32_t bytes);
/// Everything but the data.
Slot look(const ortc_slots &s, uint32_t offset);
/// Whether the data of a slot are what its record says.
bool isWhole(const ortc_slots &s, const Slot &slot);

/// Programs bytes one after the other, in whole units.
struct Writer {
  const ortc_slots &s;
  uint32_t at, end, held, crc;
  bool isBroken; ///< at the unit that begins at `at`
  uint8_t unit[ORTC_SLOTS_MAX_PROGRAM_BYTES];

  explicit Writer(const ortc_slots &slots) : s(slots) {}
  /// From here on to there.
  void begin(uint32_t first, uint32_t last);
  void put(const void *data, size_t bytes);
  /// The last unit.
  void finish();
};

} // namespace ortc::slots
