// What recomputation knows of a problem: values, who makes them, and what that costs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"
#include "compiler/planning/recompute/Recompute.h"

namespace ortc::planning {

/// An in-place candidate, by positions among RecomputeStep::reads and writes.
struct InPlaceOperands {
  uint32_t read = 0, write = 0;
  uint64_t bytes = 0;
};

struct RecomputeStep {
  std::vector<ValueId> reads, writes;   ///< ascending, each once
  std::vector<InPlaceOperands> inPlace; ///< by falling bytes
  std::vector<StepId> blocked;          ///< must come after every run of this step
  uint64_t time = 0;
  bool repeatable = false; ///< may run again, and writes whole values that nobody else writes
  bool isSink = false;     ///< no step must come after it: it can always be delayed
};

/// A problem seen as steps that can run again.
struct RecomputeGraph {
  RecomputeGraph(const Problem &problem, const Graph &graph, const std::vector<StepCost> &costs);

  const Graph &graph;
  std::vector<RecomputeStep> steps;
  std::vector<StepId>
      maker; ///< per value: the repeatable step that writes it; kNone: it cannot be made again
};

} // namespace ortc::planning
