// Bytes alive at every step of an order, exactly, with the in-place writes that save most.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"

namespace ortc::planning {

/// Lifetimes of all values under one order.
///
/// The bytes in use at a step are those of all values alive then, plus the workspaces, minus the bytes of
/// the in-place writes taken there. A write in place of a larger value keeps only its own bytes from the
/// next step on, so the choice at one step never changes the use at another.
struct Liveness {
  std::vector<uint32_t> position; ///< per step
  std::vector<StepId> firstUse;   ///< per value: step that brings it to life; kNone: alive before all steps
  std::vector<StepId> lastUse;    ///< per value: step after which it is dead; kNone: alive after all steps
  std::vector<uint64_t> usage;    ///< bytes in use, per position
  uint64_t peak = 0;
  uint32_t peakPosition = 0; ///< first position whose usage is `peak`

  /// O(total number of operands).
  Liveness(const Graph &graph, const std::vector<StepId> &order);
};

/// Peak of an order alone.
uint64_t peakOf(const Graph &graph, const std::vector<StepId> &order);

/// Bytes saved by the in-place writes at `step`: a maximum-weight matching of writes with reads that die
/// there. Weights hang on the writes alone, so taking writes by falling size and augmenting is exact.
/// Adds the edges taken to `taken` when it is not null.
uint64_t matchInPlace(const GraphStep &step, StepId id, const std::vector<StepId> &lastUse,
                      std::vector<InPlaceEdge> *taken = nullptr);

} // namespace ortc::planning
