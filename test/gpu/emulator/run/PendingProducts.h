// Products by wgmma that a warp has begun and not waited for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ortc::emulator {

/// `detail` of a product: sides whose neighbours in shared memory are not along the depth.
inline constexpr uint8_t kRowsTurned = 1, kColumnsTurned = 2;

struct Instruction;

/// A product is made when its warp waits for it, not earlier: what changes its tiles before is seen.
struct PendingProduct {
  const Instruction *instruction;
  uint64_t a, b; ///< descriptors; of A in registers nothing
  bool addsToSum;
  uint32_t group;
  /// Cells of A in registers as they were, and which of the accumulators is meant.
  std::vector<uint32_t> cells;
  size_t accumulator;
};

/// The registers of sums that are in the making; meanwhile they hold NaNs.
struct PendingAccumulator {
  const uint32_t *places;
  uint32_t count;
  std::vector<uint32_t> cells;
  uint32_t users;
};

struct PendingProducts {
  std::vector<PendingProduct> products;
  std::vector<PendingAccumulator> accumulators;
  /// Groups that were committed.
  uint32_t group = 0;
  /// Whether wgmma.fence came after the last wait.
  bool isFenced = false;

  void clear() { *this = {}; }
};

} // namespace ortc::emulator
