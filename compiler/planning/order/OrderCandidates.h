// Legal orders of the steps, each by one rule, from which the search starts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Graph.h"

namespace ortc::planning {

using Order = std::vector<StepId>;

Order sourceOrder(const Graph &graph);

/// `base` with every consumer-only step (one that leaves nothing alive behind it: an update of a
/// persistent tensor, a check) moved to the first place where it is legal. Gradient release.
Order releaseEarly(const Graph &graph, const Order &base);

/// `base` with every ready step run at once that frees at least what it allocates and fits under the
/// peak of `base`.
Order runFreeingStepsEarly(const Graph &graph, const Order &base, uint64_t peak);

/// Built from the end: the step whose last consumer was placed most recently comes next (so: before).
Order reverseDepthFirst(const Graph &graph);

/// List scheduling by least peak after the step, then least net allocation (LPMF).
Order leastPeakFirst(const Graph &graph);

/// List scheduling by least net allocation, then least allocation.
Order leastNetFirst(const Graph &graph);

} // namespace ortc::planning
