// The planner's normal form of a problem: views folded into values, dependencies as step lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Plan.h"

#include <string>

namespace ortc::planning {

using ValueId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

/// A buffer with all its views: the bytes that live and die together.
struct Value {
  BufferId root = 0;
  uint64_t bytes = 0; ///< rounded up to Graph::granule
  uint64_t alignment = 1;
  bool atStart = false, atEnd = false;
  uint32_t writers = 0;
  std::vector<StepId> users; ///< steps that read or write it, ascending, each once
};

/// An in-place candidate that liveness alone can still forbid: legal when `read` has its last use here.
struct InPlaceEdge {
  ValueId read = 0, write = 0;
  uint64_t bytes = 0;     ///< saved when taken: the bytes of `write`
  uint32_t candidate = 0; ///< index into Step::inPlace
};

struct GraphStep {
  std::vector<ValueId> values; ///< read or written, ascending, each once
  std::vector<StepId> predecessors, successors;
  std::vector<InPlaceEdge> inPlace;            ///< by falling bytes, then by rising size of the read value
  uint64_t workspaceBytes = 0, innerBytes = 0; ///< rounded workspaces
  uint64_t innerAlignment = kDefaultAlignment;
  uint32_t segment = 0;

  uint64_t workspace() const { return workspaceBytes + innerBytes; }
};

struct Graph {
  std::vector<Value> values;
  std::vector<GraphStep> steps;
  std::vector<ValueId> valueOf;        ///< per buffer; kNone when it takes no place
  std::vector<uint64_t> offsetInValue; ///< per buffer
  uint64_t granule = 1;                ///< smallest alignment of the problem; all sizes are multiples of it
  uint64_t totalBytes = 0;             ///< of all values and workspaces
  uint64_t alignment = kDefaultAlignment; ///< largest alignment
};

/// Checks `problem` and builds its graph; `inner` has the plan of every step with a body, null elsewhere.
/// O(size * log size).
Expected<Graph> buildGraph(const Problem &problem, const std::vector<std::shared_ptr<const Plan>> &inner,
                           bool useInPlace);

/// "buffer 3 'h2'" and "step 4 'conv1'", as messages name them.
std::string nameBuffer(const Problem &problem, BufferId buffer);
std::string nameStep(const Problem &problem, StepId step);

} // namespace ortc::planning
