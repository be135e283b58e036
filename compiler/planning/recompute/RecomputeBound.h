// Lower bounds of the time and the bytes that any schedule with repeated steps needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/recompute/RecomputeGraph.h"

namespace ortc::planning {

struct RecomputeBound {
  uint64_t extraTime = 0; ///< that repeated steps take at least, in any schedule within the budget
  uint64_t bytes = 0;     ///< that any schedule needs at some step
};

/// When step w runs for the first time, everything that must come before it has run, and nothing of what must
/// come after it. Whatever of the former the latter want is alive then or made again later, on top of one run
/// of every step. The least time over all choices of what is alive, within the budget, is bounded from below
/// by the Lagrangian dual of FrontierCut's minimum cut, and found by branch and bound where that is highest;
/// the largest over all w holds for every schedule. `usage`: bytes in use per step of some schedule without
/// repeated steps, to look at the highest first. Stops when `workLimit` is spent.
RecomputeBound boundRecompute(const RecomputeGraph &graph, const std::vector<uint64_t> &usage,
                              uint64_t budget, uint64_t &work, uint64_t workLimit);

} // namespace ortc::planning
