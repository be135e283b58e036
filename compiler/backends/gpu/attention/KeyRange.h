// The keys that a block of attention passes over.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/attention/SeenKeys.h"

#include <algorithm>

namespace ortc::gpu {

using namespace kernels;

/// The steps of keys that a tile of rows needs: between two lines that rise with the tile, and within all.
struct KeyRange {
  int64_t steps = 0;          ///< all
  int64_t slope = 0;          ///< steps of a tile
  int64_t first = 0, end = 0; ///< of tile 0
  double meanSteps = 0;

  KeyRange(llvm::ArrayRef<SeenKeys> seen, int64_t steps, int64_t slope) : steps(steps), slope(slope) {
    if (!fit(seen)) {
      this->slope = first = 0, end = steps;
      meanSteps = static_cast<double>(steps);
    }
  }

  int64_t firstOf(int64_t tile) const { return std::clamp<int64_t>(first + slope * tile, 0, steps); }
  int64_t endOf(int64_t tile) const { return std::clamp<int64_t>(end + slope * tile, 0, steps); }
  bool isWhole() const { return slope == 0 && first == 0 && end == steps; }

private:
  bool fit(llvm::ArrayRef<SeenKeys> seen) {
    auto last = static_cast<int64_t>(seen.size()) - 1;
    // A line through the first tile that is not cut; where all are, one that is never reached.
    first = -slope * last, end = steps;
    for (auto [tile, keys] : llvm::enumerate(seen)) {
      if (keys.first > 0)
        first = keys.first - slope * static_cast<int64_t>(tile);
      if (keys.end < steps)
        end = keys.end - slope * static_cast<int64_t>(tile);
    }
    for (auto [tile, keys] : llvm::enumerate(seen)) {
      if (firstOf(tile) != keys.first || endOf(tile) != keys.end)
        return false;
      meanSteps += static_cast<double>(keys.end - keys.first) / static_cast<double>(seen.size());
    }
    return true;
  }
};

} // namespace ortc::gpu
