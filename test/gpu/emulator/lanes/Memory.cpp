// Loads and stores.
//
// The lanes of a warp usually access neighbouring elements, or all the same one: these cases are found first
// and checked as one range. Everything else goes lane by lane.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kMostElements = 8;

/// Elements of a lane at `from` to its registers.
template <class T>
ORTC_INLINE void takeLane(Warp &warp, const uint32_t *places, uint32_t count, uint32_t lane,
                          const std::byte *from) {
  for (uint32_t k = 0; k < count; ++k) {
    if (places[k] == kNone)
      continue;
    T value;
    std::memcpy(&value, from + k * sizeof(T), sizeof value);
    warp.cells<CellOf<T>>(places[k])[lane] = value;
  }
}

template <class T>
ORTC_INLINE void putLane(Warp &warp, const uint32_t *places, uint32_t count, uint32_t lane, std::byte *to) {
  for (uint32_t k = 0; k < count; ++k) {
    T value = T(warp.cells<CellOf<T>>(places[k])[lane]);
    std::memcpy(to + k * sizeof(T), &value, sizeof value);
  }
}

/// Memory of a lane's elements is at `from` plus the lane's address.
template <class T>
ORTC_INLINE void takeScattered(Warp &warp, const uint32_t *places, uint32_t count, const uint64_t *address,
                               uint64_t from) {
  for (uint32_t k = 0; k < count; ++k) {
    if (places[k] == kNone)
      continue;
    CellOf<T> *d = warp.cells<CellOf<T>>(places[k]);
    ORTC_SCALAR_LOOP
    for (uint32_t l = 0; l < kLanes; ++l) {
      T value;
      std::memcpy(&value, reinterpret_cast<const std::byte *>(from + address[l] + k * sizeof(T)),
                  sizeof value);
      d[l] = value;
    }
  }
}

/// Of a lane after the other, `stride` bytes apart.
template <class T>
ORTC_INLINE void takeStrided(Warp &warp, const uint32_t *places, uint32_t count, uint32_t mask,
                             const std::byte *from, uint32_t stride) {
  const uint32_t first = uint32_t(__builtin_ctz(mask));
  for (uint32_t k = 0; k < count; ++k) {
    if (places[k] == kNone)
      continue;
    CellOf<T> *d = warp.cells<CellOf<T>>(places[k]);
    if (mask == kAllLanes && stride == sizeof(T)) {
      for (uint32_t l = 0; l < kLanes; ++l) {
        T value;
        std::memcpy(&value, from + l * sizeof(T), sizeof value);
        d[l] = value;
      }
      continue;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint32_t l = uint32_t(__builtin_ctz(rest));
      T value;
      std::memcpy(&value, from + uint64_t(l - first) * stride + k * sizeof(T), sizeof value);
      d[l] = value;
    }
  }
}

template <class T> void load(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t *places = warp.lists + i.list;
  const uint32_t count = i.count, bytes = uint32_t(sizeof(T)) * count;
  Addresses at(warp, i, mask, bytes);
  if (at.pattern == Pattern::Mixed) {
    bool isDone;
    if (uint64_t from = at.checkShared(warp, i, isDone))
      takeScattered<T>(warp, places, count, at.address, from);
    else if (!isDone)
      at.eachChecked<Touch::Read>(
          warp, i, [&](uint32_t l, std::byte *own) { takeLane<T>(warp, places, count, l, own); });
    return;
  }
  const std::byte *from = at.check<Touch::Read>(warp, i);
  if (!from)
    return;
  if (at.pattern == Pattern::Adjacent)
    return takeStrided<T>(warp, places, count, mask, from, bytes);
  if (at.space == Space::Local)
    return takeStrided<T>(warp, places, count, mask, from + uint64_t(at.first()) * warp.block->localBytes,
                          warp.block->localBytes);
  for (uint32_t k = 0; k < count; ++k) {
    if (places[k] == kNone)
      continue;
    T value;
    std::memcpy(&value, from + k * sizeof(T), sizeof value);
    eachLane(warp.cells<CellOf<T>>(places[k]), mask, [&](uint32_t) { return CellOf<T>(value); });
  }
}

template <class T> void store(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t *places = warp.lists + i.list;
  const uint32_t count = i.count, bytes = uint32_t(sizeof(T)) * count;
  Addresses at(warp, i, mask, bytes);
  const bool isLocal = at.space == Space::Local && at.pattern == Pattern::Same;
  if (at.pattern == Pattern::Adjacent || isLocal) {
    std::byte *to = at.check<Touch::Write>(warp, i);
    if (!to)
      return;
    if (count == 1 && mask == kAllLanes && !isLocal) {
      const CellOf<T> *cells = warp.cells<CellOf<T>>(places[0]);
      for (uint32_t l = 0; l < kLanes; ++l) {
        T value = T(cells[l]);
        std::memcpy(to + l * sizeof(T), &value, sizeof value);
      }
      return;
    }
    const uint64_t stride = isLocal ? warp.block->localBytes : bytes;
    const uint32_t first = isLocal ? 0 : at.first();
    eachActive(mask, [&](uint32_t l) { putLane<T>(warp, places, count, l, to + (l - first) * stride); });
    return;
  }
  T values[kMostElements];
  at.values = reinterpret_cast<const std::byte *>(values);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const uint32_t l = uint32_t(__builtin_ctz(rest));
    putLane<T>(warp, places, count, l, reinterpret_cast<std::byte *>(values));
    std::byte *to = at.checkLane<Touch::Write>(warp, i, l, l);
    if (!to)
      return;
    std::memcpy(to, values, bytes);
  }
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void listAccesses(LaneCode &code) {
  code.load[0] = load<uint8_t>;
  code.load[1] = load<uint16_t>;
  code.load[2] = load<uint32_t>;
  code.load[3] = load<uint64_t>;
  code.store[0] = store<uint8_t>;
  code.store[1] = store<uint16_t>;
  code.store[2] = store<uint32_t>;
  code.store[3] = store<uint64_t>;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
