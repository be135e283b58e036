// Lower bound of the max-live of every order, one minimum cut per step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"
#include "compiler/planning/order/MinCut.h"

namespace ortc::planning {

/// When step v runs, the steps that have finished form an ideal: closed under "must come before", with all
/// that v needs inside, v and all that needs v outside. The bytes alive across it are a cut, so the
/// smallest use of v over all orders is a minimum cut plus what v itself touches. It is exact for v alone;
/// in-place writes are counted as if every candidate read could die at v, which keeps it a lower bound.
class OrderBound {
public:
  explicit OrderBound(const Graph &graph) : graph(graph) {}

  struct Result {
    uint64_t bytes = 0;   ///< no order uses fewer bytes at the step
    bool complete = true; ///< false: the limit was spent, `bytes` is valid but may be too low
  };

  /// Bound at `step`. `ideal` (may be null) gets, per step, whether it runs before `step` in the cut.
  Result at(StepId step, uint64_t &work, uint64_t workLimit, std::vector<bool> *ideal = nullptr);

private:
  /// Where a step stands when the step in question runs.
  enum class State : uint8_t { kFree, kHasRun, kHasNot };
  void spread(StepId from, State state, uint64_t &work);
  uint64_t addValue(const Value &value);

  const Graph &graph;
  MinCut network;
  std::vector<State> states;       ///< per step
  std::vector<MinCut::Node> nodes; ///< per free step
  std::vector<StepId> stack, freeUsers;
};

} // namespace ortc::planning
