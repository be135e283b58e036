// Addresses of the lanes, and what makes an access a good one: bounds, alignment, memory that was written, no
// races.
//
// The lanes of a warp usually access consecutive elements, or few different ones. Such patterns are found
// first: they are checked as one range, or for one of the lanes that share an address.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/lanes/Races.h"

namespace ortc::emulator {
namespace {

enum class Pattern : uint8_t {
  Same,     ///< all lanes at one address
  Adjacent, ///< consecutive lanes, consecutive elements
  Mixed
};

/// Whether the states of so many bytes have all the bits. Bytes behind them can be read.
ORTC_INLINE bool haveState(const uint8_t *state, uint32_t bytes, uint8_t bits) {
  const uint64_t each = 0x0101010101010101u * bits;
  if (bytes <= 8) {
    uint64_t seen, wanted = each >> (64 - 8 * bytes);
    std::memcpy(&seen, state, sizeof seen);
    return (seen & wanted) == wanted;
  }
  uint64_t all = each;
  for (uint32_t k = 0; k + 8 <= bytes; k += 8) {
    uint64_t seen;
    std::memcpy(&seen, state + k, sizeof seen);
    all &= seen;
  }
  if (bytes % 8) {
    uint64_t seen;
    std::memcpy(&seen, state + bytes - 8, sizeof seen);
    all &= seen;
  }
  return all == each;
}

/// Lanes whose number lacks a bit.
constexpr uint32_t kLanesWithout[] = {0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff};

constexpr uint8_t kGood = kExists | kWritten | kWritable;

struct Addresses {
  uint64_t address[kLanes];
  Space space;
  Pattern pattern;
  uint32_t mask, bytes;
  /// What the lane that is checked stores.
  const std::byte *values = nullptr;

  /// Of `size` bytes a lane.
  Addresses(Warp &warp, const Instruction &i, uint32_t lanes, uint32_t size)
      : space(i.space), mask(lanes), bytes(size) {
    const uint64_t offset = uint64_t(i.offset);
    if (i.a == kNone) {
      for (uint32_t l = 0; l < kLanes; ++l)
        address[l] = offset;
    } else if (i.isWide) {
      const uint64_t *cells = warp.cells<uint64_t>(i.a);
      ORTC_LANE_LOOP
      for (uint32_t l = 0; l < kLanes; ++l)
        address[l] = cells[l] + offset;
    } else {
      const uint32_t *cells = warp.cells<uint32_t>(i.a);
      ORTC_LANE_LOOP
      for (uint32_t l = 0; l < kLanes; ++l)
        address[l] = uint32_t(cells[l] + uint32_t(offset));
    }
    if (space == Space::Generic)
      findSpace();
    findPattern();
  }

  /// The space of a generic address.
  static ORTC_INLINE Space resolve(uint64_t address) {
    if (address < kSharedBase)
      return Space::Global;
    return address < kLocalBase ? Space::Shared : address < kParamBase ? Space::Local : Space::Param;
  }
  static ORTC_INLINE uint64_t windowOf(Space space) {
    return space == Space::Shared  ? kSharedBase
           : space == Space::Local ? kLocalBase
           : space == Space::Param ? kParamBase
                                   : 0;
  }

  uint32_t first() const { return uint32_t(__builtin_ctz(mask)); }

  /// Checks the range of a pattern that is not Mixed; where it begins in the host's memory, or null after a
  /// report.
  template <Touch touch> std::byte *check(Warp &warp, const Instruction &i) {
    const bool isSame = pattern == Pattern::Same;
    const uint32_t count = isSame ? 1 : uint32_t(__builtin_popcount(mask));
    const uint32_t isMany = isSame && (mask & (mask - 1)) ? kManyLanes : 0;
    return checkRange<touch>(warp, i, address[first()], count, warp.id << kWarpShift | first() | isMany);
  }

  /// visit(lane, its host's memory) for every lane, in order, after its check; false after a report.
  template <Touch touch, class Visit>
  ORTC_INLINE bool eachChecked(Warp &warp, const Instruction &i, Visit visit) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint32_t lane = uint32_t(__builtin_ctz(rest));
      std::byte *data = checkLane<touch>(warp, i, lane, lane);
      if (!data)
        return false;
      visit(lane, data);
    }
    return true;
  }

  /// For loads of a whole warp in a Mixed pattern: checks one of those lanes that share an address, and where
  /// offset 0 is in the host's memory. 0 after a report; `isDone` is false where this does not work.
  uint64_t checkShared(Warp &warp, const Instruction &i, bool &isDone);

  /// Checks the access of a lane, which is noted as one of `thread`; where it is in the host's memory, or
  /// null after a report.
  template <Touch touch>
  ORTC_INLINE std::byte *checkLane(Warp &warp, const Instruction &i, uint32_t lane, uint32_t thread) {
    Block &block = *warp.block;
    uint64_t start = address[lane];
    Space own = space;
    if (own == Space::Generic) {
      own = resolve(start);
      start -= windowOf(own);
    }
    const uint8_t needed = neededState<touch>(block);
    constexpr bool isWrite = touch != Touch::Read;
    bool isRace = false;
    std::byte *data = nullptr;
    if (start & (bytes - 1)) {
    } else if (own == Space::Global) {
      const MemoryView &memory = block.memory;
      const uint64_t at = start - memory.base;
      if (at < memory.bytes && haveState(memory.state + at, bytes, needed)) {
        data = memory.data + at;
        if (block.isChecked) {
          const uint32_t granule = block.globalGranule;
          isRace = touchGlobal<touch>(warp, memory.cells + (at >> granule), bytes >> granule) != kNone;
          if (isWrite)
            std::memset(memory.state + at, kGood, bytes);
        }
      }
    } else if (own == Space::Shared) {
      if (start < block.sharedBytes && haveState(block.sharedState + start, bytes, needed)) {
        data = block.shared + start;
        if (block.isChecked) {
          const uint32_t granule = block.sharedGranule;
          isRace = touchShared<touch>(warp, uint32_t(start >> granule), bytes >> granule,
                                      warp.id << kWarpShift | thread, 31) != kNone;
          if (isWrite)
            std::memset(block.sharedState + start, kGood, bytes);
          isRace = isRace && !isRepetition(lane, data);
        }
      }
    } else if (own == Space::Local) {
      if (start <= block.localBytes && bytes <= block.localBytes - start)
        return warp.local + uint64_t(lane) * block.localBytes + start;
    } else if (!isWrite && start <= block.paramBytes && bytes <= block.paramBytes - start) {
      return block.params + start;
    }
    if (data && !isRace)
      return data;
    if (data)
      reportRace(warp, i, lane, own, start, bytes, touch);
    else
      reportAccess(warp, i, lane, own, start, bytes, touch);
    return nullptr;
  }

private:
  /// The state that the bytes must have.
  template <Touch touch> static ORTC_INLINE uint8_t neededState(const Block &block) {
    return touch == Touch::Read    ? block.readable
           : touch == Touch::Write ? kWritable
                                   : uint8_t(kWritable | block.readable);
  }

  /// Where all lanes are in one space: makes addresses relative to it.
  void findSpace() {
    const Space one = resolve(address[first()]);
    for (uint32_t rest = mask; rest; rest &= rest - 1)
      if (resolve(address[__builtin_ctz(rest)]) != one)
        return;
    space = one;
    const uint64_t window = windowOf(one);
    for (uint32_t l = 0; l < kLanes; ++l)
      address[l] -= window;
  }

  ORTC_INLINE void findPattern() {
    const uint32_t lane = first();
    const uint64_t start = address[lane];
    uint64_t notSame = 0, notAdjacent = 0;
    if (mask == kAllLanes) {
      ORTC_LANE_LOOP
      for (uint32_t l = 0; l < kLanes; ++l) {
        notSame |= address[l] ^ start;
        notAdjacent |= address[l] ^ (start + l * bytes);
      }
    } else {
      ORTC_LANE_LOOP
      for (uint32_t l = 0; l < kLanes; ++l) {
        uint64_t isActive = mask & kLaneBits.of[l] ? ~uint64_t(0) : 0;
        notSame |= (address[l] ^ start) & isActive;
        notAdjacent |= (address[l] ^ (start + uint64_t(int64_t(l) - int64_t(lane)) * bytes)) & isActive;
      }
      uint32_t run = mask >> lane;
      notAdjacent |= run & (run + 1); // lanes are missing in between
    }
    pattern = !notAdjacent ? Pattern::Adjacent : !notSame ? Pattern::Same : Pattern::Mixed;
    if (space == Space::Generic)
      pattern = Pattern::Mixed;
    if (space == Space::Local) // the memory of lanes is apart
      pattern = notSame ? Pattern::Mixed : Pattern::Same;
  }

  /// `bit`, if lanes whose numbers differ in it have the same address, else 0.
  template <uint32_t bit> ORTC_INLINE uint32_t freeBit() const {
    if (address[0] != address[bit])
      return 0;
    uint64_t differs = 0;
    for (uint32_t from = 0; from < kLanes; from += 2 * bit)
      for (uint32_t l = from; l < from + bit; ++l)
        differs |= address[l] ^ address[l + bit];
    return differs ? 0 : bit;
  }

  /// Checks `count` consecutive elements from `start`, one a lane of those from `thread`; where they are, or
  /// null after a report.
  template <Touch touch>
  std::byte *checkRange(Warp &warp, const Instruction &i, uint64_t start, uint32_t count, uint32_t thread) {
    Block &block = *warp.block;
    constexpr bool isWrite = touch != Touch::Read;
    const uint8_t needed = neededState<touch>(block);
    const uint32_t size = count * bytes;
    uint32_t race = kNone, granule = 0;
    std::byte *data = nullptr;
    if (start & (bytes - 1)) {
    } else if (space == Space::Global) {
      const MemoryView &memory = block.memory;
      const uint64_t at = start - memory.base;
      if (at < memory.bytes && haveState(memory.state + at, size, needed)) {
        data = memory.data + at;
        if (block.isChecked) {
          granule = block.globalGranule;
          race = touchGlobal<touch>(warp, memory.cells + (at >> granule), size >> granule);
          if (isWrite)
            std::memset(memory.state + at, kGood, size);
        }
      }
    } else if (space == Space::Shared) {
      if (start <= block.sharedBytes && size <= block.sharedBytes - start &&
          haveState(block.sharedState + start, size, needed)) {
        data = block.shared + start;
        if (block.isChecked) {
          granule = block.sharedGranule;
          const uint32_t laneShift = thread & kManyLanes ? 31 : uint32_t(__builtin_ctz(bytes)) - granule;
          race = touchShared<touch>(warp, uint32_t(start >> granule), size >> granule, thread, laneShift);
          if (isWrite)
            std::memset(block.sharedState + start, kGood, size);
        }
      }
    } else if (space == Space::Local) {
      if (start <= block.localBytes && bytes <= block.localBytes - start)
        return warp.local + start;
    } else if (!isWrite && start <= block.paramBytes && size <= block.paramBytes - start) {
      return block.params + start;
    }
    if (data && race == kNone)
      return data;
    const uint64_t culprit = race == kNone ? 0 : (uint64_t(race) << granule) / bytes;
    for (uint32_t rest = mask; rest; rest &= rest - 1) { // the lane that it is about
      const uint32_t lane = uint32_t(__builtin_ctz(rest));
      if (data && address[lane] == start + culprit * bytes) {
        reportRace(warp, i, lane, space, address[lane], bytes, touch);
        return nullptr;
      }
      if (!data && !checkLane<touch>(warp, i, lane, lane))
        return nullptr;
    }
    return nullptr;
  }

  /// Whether the lane stores what an earlier lane of the same instruction stored there.
  bool isRepetition(uint32_t lane, const std::byte *data) const {
    if (!values || std::memcmp(data, values, bytes) != 0)
      return false;
    for (uint32_t earlier = mask & ((1u << lane) - 1); earlier; earlier &= earlier - 1)
      if (address[__builtin_ctz(earlier)] == address[lane])
        return true;
    return false;
  }
};

/// Bits of the lane's number that make no difference to the address become free; one lane stands for those
/// that differ in them.
inline uint64_t Addresses::checkShared(Warp &warp, const Instruction &i, bool &isDone) {
  isDone = mask == kAllLanes && (space == Space::Shared || space == Space::Global);
  if (!isDone)
    return 0;
  const uint32_t isFree = freeBit<1>() | freeBit<2>() | freeBit<4>() | freeBit<8>() | freeBit<16>();
  const MemoryView &memory = warp.block->memory;
  const uint64_t base = space == Space::Shared ? reinterpret_cast<uint64_t>(warp.block->shared)
                                               : reinterpret_cast<uint64_t>(memory.data) - memory.base;
  const uint32_t isMany = isFree ? kManyLanes : 0;
  uint32_t speakers = kAllLanes, count = 0;
  for (uint32_t bit = 1; bit < kLanes; bit *= 2)
    speakers &= isFree & bit ? kLanesWithout[__builtin_ctz(bit)] : kAllLanes;
  bool isRange = isFree != 0;
  for (uint32_t rest = speakers; rest && isRange; rest &= rest - 1)
    isRange = address[__builtin_ctz(rest)] == address[0] + uint64_t(count++) * bytes;
  if (isRange)
    return checkRange<Touch::Read>(warp, i, address[0], count, warp.id << kWarpShift | isMany) ? base : 0;
  for (uint32_t rest = speakers; rest; rest &= rest - 1) {
    const uint32_t l = uint32_t(__builtin_ctz(rest));
    if (!checkLane<Touch::Read>(warp, i, l, l | isMany))
      return 0;
  }
  return base;
}

} // namespace
} // namespace ortc::emulator
