// Planning problems with the shape of training steps, made from a few numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Problem.h"

namespace ortc::planning::benchmark {

struct TrainingGraph {
  const char *name;
  uint32_t blocks;     ///< residual blocks
  uint32_t branches;   ///< parallel paths of a block, joined by a sum
  uint32_t depth;      ///< layers of a path
  uint64_t activation; ///< bytes of a block's input; halves at every quarter of the blocks
  uint64_t weight;     ///< bytes of a layer's gradient; doubles there
  bool interleave;     ///< the source order walks the paths of a block side by side
};

/// Forward, loss, backward, then all updates (as a program is written; the planner may release early).
/// A layer is a contraction, a normalisation with small statistics and an activation in place.
Problem makeTrainingGraph(const TrainingGraph &graph);

} // namespace ortc::planning::benchmark
