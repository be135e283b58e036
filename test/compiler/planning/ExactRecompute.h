// The least time of small recomputation problems, by exhaustive search: what recompute() is measured against.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/recompute/Recompute.h"

namespace ortc::planning::test {

struct ExactOptions {
  size_t states = 1'000'000; ///< gives up when it has seen as many; about 150 bytes each
  bool shortcuts = true;     ///< false: without the rules that leave out what no optimum needs, to test them
  std::vector<StepId>
      order; ///< of the first runs; empty: any legal one. A plan of what is found may still change it
};

struct ExactRecomputation {
  enum class Outcome {
    kOptimal,
    kImpossible, ///< no schedule keeps to the budget
    kGaveUp,     ///< too many states, values, or steps
  };
  Outcome outcome = Outcome::kGaveUp;
  uint64_t time = 0; ///< of all runs. kOptimal: the least; kGaveUp: no schedule takes less
  std::vector<StepRun>
      runs; ///< kOptimal: of such a schedule; max-live of expand(problem, runs), as it is written, is
            ///< within the budget
  size_t states = 0;
};

/// Finds the least time of all runs of any schedule whose live bytes never pass `budget`. A schedule is a
/// sequence of runs: every step at least once in any legal order, repeatable ones as often as it likes.
/// Shares no code with recompute() but the normal form (Graph.h).
///
/// Exact in: the order of first runs; values that several steps write; values alive at the start; workspaces;
/// in-place writes (the matching that saves most, over all choices of what dies there); a second run of a
/// step of which only some results are missing (the others are written again, too); Step::after and segments
/// (a step does not run again once one has run that must follow it).
///
/// By definition, not by proof: a value alive at the end stays alive from the first run of its maker on, as
/// in recompute(); a later run writes a copy beside it that dies at once.
///
/// A lower bound only: live bytes are counted, not offsets, so an arena may need more than `budget`; and
/// sizes are rounded with the granule of `problem`, which expand() may make larger where alignments differ.
///
/// Takes problems that check() accepts, without bodies, with at most 64 values of more than 0 bytes and 256
/// steps that touch them or have workspaces. Needs as many states as there are sensible sets of finished
/// steps and of values at hand.
ExactRecomputation recomputeExactly(const Problem &problem, const std::vector<StepCost> &costs,
                                    uint64_t budget, const ExactOptions &options = {});

} // namespace ortc::planning::test
