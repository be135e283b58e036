// Runs cheap steps again so that what they make need not be kept: fits a training step into a budget of bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Plan.h"

namespace ortc::planning {

/// What a step costs, and whether it may run more than once.
struct StepCost {
  uint64_t time = 0;       ///< of one run, in a unit of the caller's; all steps together at most 2^44
  bool repeatable = false; ///< a second run writes the same bytes, and does nothing else that anybody sees
};

struct RecomputeOptions {
  uint64_t budget = 0; ///< that Plan::arenaBytes has to keep to
  /// Of the search for what to run again; of that at most four million units for each step of the problem.
  /// What cannot be kept to costs it two and a half times, and once more for each budget that is tried on the way down.
  uint64_t searchWork = 700'000'000;
  uint64_t boundWork = 400'000'000; ///< of the lower bound
  bool findSmallest = true;         ///< when nothing fits: look for the smallest plan there is
  uint64_t seed = 1;
};

/// How recomputation plans within a budget: every attempt, so in less time than plan() takes by default.
PlanOptions planWithin(uint64_t budget);

/// One run of a step.
struct StepRun {
  StepId step = 0;
  /// Per Step::reads: the run whose result it takes, as a position among the runs; kNone where no run of a repeatable
  /// step made it.
  std::vector<uint32_t> sources;
};

/// Which steps run again, and where.
struct Recomputation {
  /// False: nothing within the budget was found. With `findSmallest` this is the smallest plan found: its size and
  /// everything above are kept to as budgets, and a byte less is not. Sizes are multiples of the smallest alignment.
  bool fits = false;
  std::vector<StepRun> runs; ///< a legal order; the first run of each step is that of the problem
  Plan plan;                 ///< of expand(problem, runs)
  uint64_t time = 0;         ///< of all runs
  uint64_t plainTime = 0;    ///< of every step once
  uint64_t leastTime = 0;    ///< no schedule that keeps to the budget takes less, however often steps run
  uint64_t leastBudget = 0;  ///< no schedule needs fewer bytes
  uint64_t searchWork = 0, boundWork = 0;
};

/// The problem whose steps are `runs`: repeated steps write buffers of their own, and a step that had to come after
/// another comes after all its runs that precede it. The position of a run is its step id.
Problem expand(const Problem &problem, const std::vector<StepRun> &runs);

/// Finds runs whose plan takes at most `options.budget` bytes of arena and as little time as the search can
/// do. `costs` has one entry a step; `whole`, where it is known, is what plan() makes of the problem by
/// default. Deterministic. Fails as plan() does; a budget that cannot be kept is no failure.
///
/// Method: a value may be dropped between two of its uses and made again, with what that needs, before the
/// next one. What to drop at the frontier of forward and backward steps is a minimum cut between bytes and
/// time under a price of a byte; prices are perturbed, and single gaps flipped, under an exact simulation of
/// the resulting schedule. That is done in several orders of the steps, and again in the order that the
/// planner gives to what was found. The bound is the cut's Lagrangian dual, at many frontiers
/// (docs/memory-planning.md).
Expected<Recomputation> recompute(const Problem &problem, const std::vector<StepCost> &costs,
                                  const RecomputeOptions &options, const Plan *whole = nullptr);

} // namespace ortc::planning
