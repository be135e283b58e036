// The order of an epoch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>

#include "support/Random.h"

namespace ortc {

/// Fills `order` with a permutation of [0, items) that depends on nothing but its arguments (Fisher-Yates with
/// counter-based random numbers), so that a resumed run needs no more than seed and position.
inline void shuffle(uint64_t seed, int64_t epoch, int64_t items, int64_t *order) {
  std::iota(order, order + items, 0);
  uint64_t key = mixBits(mixBits(seed + kGoldenGamma) ^ uint64_t(epoch) * 0xd1b54a32d192ed03u);
  for (int64_t i = items - 1; i > 0; --i) {
    uint64_t random = mixBits(key + uint64_t(i) * kGoldenGamma);
    std::swap(order[i], order[int64_t(pickBelow(uint64_t(i) + 1, random))]); // its bias is below 2^-32
  }
}

} // namespace ortc
