// Size arithmetic that cannot wrap, and the random numbers of the searches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::planning {

/// Largest sum of all rounded sizes of one problem: sums of two such values still fit 64 bits.
inline constexpr uint64_t kMaxTotalBytes = uint64_t(1) << 62;
inline constexpr uint64_t kMaxAlignment = uint64_t(1) << 20;

/// `value` rounded up to a multiple of `alignment` (a power of two); value <= kMaxTotalBytes.
inline uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// total += bytes; false and unchanged when that passes kMaxTotalBytes.
inline bool addBytes(uint64_t &total, uint64_t bytes) {
  if (bytes > kMaxTotalBytes || total > kMaxTotalBytes - bytes)
    return false;
  total += bytes;
  return true;
}

/// splitmix64: the same sequence everywhere, which the standard distributions do not promise.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  /// A number in [0, limit); limit > 0. The bias of the multiplication is below limit / 2^32.
  uint32_t below(uint32_t limit) { return uint32_t(((next() >> 32) * limit) >> 32); }

private:
  uint64_t state;
};

} // namespace ortc::planning
