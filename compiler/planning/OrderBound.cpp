// Lower bound of the max-live of every order, one minimum cut per step.
//
// Source side = has run. Nodes: source, sink, one per step, two per value. An edge u -> p of infinite
// capacity for every predecessor p of u keeps the set closed. A value is alive when some user has run and
// some has not: u -> a (infinite), a -> b (its bytes), b -> u (infinite) for all its users u.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/OrderBound.h"

#include "compiler/planning/Liveness.h"

namespace ortc::planning {

static constexpr MinCut::Node kSource = 0, kSink = 1;

static MinCut::Node stepNode(StepId s) { return 2 + s; }

OrderBound::OrderBound(const Graph &graph)
    : graph(graph), network(uint32_t(2 + graph.steps.size() + 2 * graph.values.size())) {
  for (StepId s = 0; s < graph.steps.size(); ++s) {
    fromSource.push_back(network.addEdge(kSource, stepNode(s), 0));
    toSink.push_back(network.addEdge(stepNode(s), kSink, 0));
    for (StepId before : graph.steps[s].predecessors)
      network.addEdge(stepNode(s), stepNode(before), MinCut::kInfinite);
  }
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Value &value = graph.values[v];
    MinCut::Node a = MinCut::Node(2 + graph.steps.size() + 2 * v), b = a + 1;
    if (value.atStart && value.atEnd)
      alwaysAlive += value.bytes;
    bool constant = value.atStart && value.atEnd;
    if (value.atStart)
      network.addEdge(kSource, a, MinCut::kInfinite);
    else
      for (StepId user : value.users)
        network.addEdge(stepNode(user), a, MinCut::kInfinite);
    valueEdge.push_back(network.addEdge(a, b, value.atEnd ? 0 : value.bytes));
    valueEndEdge.push_back(network.addEdge(a, kSink, value.atEnd && !constant ? value.bytes : 0));
    if (!value.atEnd)
      for (StepId user : value.users)
        network.addEdge(b, stepNode(user), MinCut::kInfinite);
  }
}

OrderBound::Result OrderBound::at(StepId id, uint64_t &work, uint64_t workLimit, std::vector<bool> *ideal) {
  const GraphStep &step = graph.steps[id];
  uint64_t own = step.workspace() + alwaysAlive;
  // What the step touches is alive at it in every order: counted here, not in the cut.
  std::vector<StepId> dies(graph.values.size(), kNone);
  for (ValueId v : step.values) {
    const Value &value = graph.values[v];
    if (!value.atEnd)
      dies[v] = id;
    if (!(value.atStart && value.atEnd))
      own += value.bytes;
    network.setCapacity(valueEdge[v], 0);
    network.setCapacity(valueEndEdge[v], 0);
  }
  own -= matchInPlace(step, id, dies);
  auto force = [&](uint64_t capacity) {
    for (StepId before : step.predecessors)
      network.setCapacity(fromSource[before], capacity);
    network.setCapacity(toSink[id], capacity);
    for (StepId s = 0; s < graph.steps.size(); ++s) {
      if (graph.steps[s].segment < step.segment)
        network.setCapacity(fromSource[s], capacity);
      else if (graph.steps[s].segment > step.segment)
        network.setCapacity(toSink[s], capacity);
    }
  };
  force(MinCut::kInfinite);
  MinCut::Flow flow = network.run(kSource, kSink, work, workLimit);
  if (ideal && flow.complete) {
    ideal->assign(graph.steps.size(), false);
    for (StepId s = 0; s < graph.steps.size(); ++s)
      (*ideal)[s] = network.onSourceSide(stepNode(s));
  }
  force(0);
  for (ValueId v : step.values) {
    const Value &value = graph.values[v];
    network.setCapacity(valueEdge[v], value.atEnd ? 0 : value.bytes);
    network.setCapacity(valueEndEdge[v], value.atEnd && !value.atStart ? value.bytes : 0);
  }
  return {own + flow.value, flow.complete};
}

} // namespace ortc::planning
