// Recomputation of training steps that are small enough for the exact optimum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/planning/ExactRecompute.h"

namespace ortc::planning::benchmark {

/// All but the `count` largest buffers get 0 bytes: they take no place and never have to be made again.
/// `problem` has no views.
Problem coarsen(Problem problem, uint32_t count);

/// A time and a flag per line, one line a step.
std::vector<StepCost> readCosts(const std::string &text);

/// One budget of one coarsened problem.
struct CoarseResult {
  uint64_t budget = 0;
  test::ExactRecomputation exact; ///< the optimum
  test::ExactRecomputation fixed; ///< that of the first runs in the order of the plan without recomputation
  Recomputation found;
  double exactSeconds = 0, foundSeconds = 0; ///< processor time
};

/// `percent` of the arena that the plan without recomputation takes.
Expected<CoarseResult> recomputeCoarsened(const Problem &problem, const std::vector<StepCost> &costs,
                                          uint32_t percent);

} // namespace ortc::planning::benchmark
