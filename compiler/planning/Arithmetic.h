// Size arithmetic that cannot wrap, and the random numbers of the searches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Random.h"

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

/// Numbers of 32 bits, which the planner's searches draw.
class Random : public ortc::Random {
public:
  using ortc::Random::Random;

  /// A number in [0, limit); limit > 0. The bias of the multiplication is below limit / 2^32.
  uint32_t below(uint32_t limit) { return uint32_t(((next() >> 32) * limit) >> 32); }
};

} // namespace ortc::planning
