// What recomputation knows of a problem: values, who makes them, and what that costs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/recompute/RecomputeGraph.h"

#include <algorithm>

namespace ortc::planning {

/// The values of `buffers`, ascending, each once; empty buffers are none.
static std::vector<ValueId> valuesOf(const Problem &problem, const Graph &graph,
                                     const std::vector<BufferId> &buffers) {
  std::vector<ValueId> values;
  for (BufferId b : buffers)
    if (problem.buffers[b].bytes > 0)
      values.push_back(graph.valueOf[b]);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

static uint32_t positionOf(const std::vector<ValueId> &values, ValueId value) {
  auto found = std::lower_bound(values.begin(), values.end(), value);
  return found != values.end() && *found == value ? uint32_t(found - values.begin()) : kNone;
}

RecomputeGraph::RecomputeGraph(const Problem &problem, const Graph &graph, const std::vector<StepCost> &costs)
    : graph(graph), steps(graph.steps.size()), maker(graph.values.size(), kNone) {
  for (StepId s = 0; s < steps.size(); ++s) {
    RecomputeStep &step = steps[s];
    step.reads = valuesOf(problem, graph, problem.steps[s].reads);
    step.writes = valuesOf(problem, graph, problem.steps[s].writes);
    step.time = costs[s].time;
    step.isSink = graph.steps[s].successors.empty();
    step.repeatable = costs[s].repeatable;
    for (BufferId b : problem.steps[s].writes)
      if (ValueId v = graph.valueOf[b]; problem.buffers[b].bytes > 0)
        step.repeatable &= graph.values[v].root == b && graph.values[v].writers == 1 &&
                           !graph.values[v].atStart && positionOf(step.reads, v) == kNone;
    for (StepId earlier : problem.steps[s].after)
      steps[earlier].blocked.push_back(s);
    for (const InPlaceEdge &edge : graph.steps[s].inPlace) {
      uint32_t read = positionOf(step.reads, edge.read), write = positionOf(step.writes, edge.write);
      if (read != kNone && write != kNone)
        step.inPlace.push_back({read, write, edge.bytes});
    }
  }
  for (StepId s = 0; s < steps.size(); ++s)
    for (ValueId v : steps[s].writes)
      if (steps[s].repeatable && !graph.values[v].atEnd)
        maker[v] = s;
}

} // namespace ortc::planning
