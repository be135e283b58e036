// Lower bound of the max-live of every order, one minimum cut per step.
//
// What must have run before the step and what cannot have run is known from the dependencies alone; only the
// other, free steps are nodes of the network. Source side = has run. An edge u -> p of infinite capacity for
// every free predecessor p of u keeps the set closed. A value is alive when some user has run and some has
// not: u -> a (infinite), a -> b (its bytes), b -> u (infinite) for all its free users u, where a is the
// source when a user surely has run and b the sink when one surely has not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/OrderBound.h"

#include "compiler/planning/Liveness.h"

#include <algorithm>

namespace ortc::planning {

static constexpr MinCut::Node kSource = 0, kSink = 1;

/// Gives `state` to everything that must come before (kHasRun) or after (kHasNot) a step.
void OrderBound::spread(StepId from, State state, uint64_t &work) {
  stack.assign(1, from);
  while (!stack.empty()) {
    const GraphStep &step = graph.steps[stack.back()];
    stack.pop_back();
    const std::vector<StepId> &list = state == State::kHasRun ? step.predecessors : step.successors;
    work += 1 + list.size();
    for (StepId other : list)
      if (states[other] == State::kFree) {
        states[other] = state;
        stack.push_back(other);
      }
  }
}

/// Adds an untouched value to the network; returns its bytes when it is alive whatever the free steps do.
uint64_t OrderBound::addValue(const Value &value) {
  bool someRan = value.atStart, someWait = value.atEnd;
  freeUsers.clear();
  for (StepId user : value.users) {
    someRan |= states[user] == State::kHasRun;
    someWait |= states[user] == State::kHasNot;
    if (states[user] == State::kFree)
      freeUsers.push_back(user);
  }
  if (someRan && someWait)
    return value.bytes;
  if (freeUsers.empty() || (freeUsers.size() == 1 && !someRan && !someWait))
    return 0;
  MinCut::Node a = kSource, b = kSink;
  if (!someRan) {
    bool direct = freeUsers.size() == 1 || value.writers == 1; // the only writer runs before all other users
    a = direct ? nodes[freeUsers[0]] : network.addNode();
    for (StepId user : freeUsers)
      if (!direct)
        network.addEdge(nodes[user], a, MinCut::kInfinite);
  }
  if (!someWait) {
    bool direct = freeUsers.size() == 1 || (!someRan && value.writers == 1 && freeUsers.size() == 2);
    b = direct ? nodes[freeUsers.back()] : network.addNode();
    for (size_t i = 0; i < freeUsers.size() && !direct; ++i)
      if (nodes[freeUsers[i]] != a)
        network.addEdge(b, nodes[freeUsers[i]], MinCut::kInfinite);
  }
  network.addEdge(a, b, value.bytes);
  return 0;
}

OrderBound::Result OrderBound::at(StepId id, uint64_t &work, uint64_t workLimit, std::vector<bool> *ideal) {
  const GraphStep &step = graph.steps[id];
  states.assign(graph.steps.size(), State::kFree);
  nodes.resize(graph.steps.size());
  for (StepId s = 0; s < graph.steps.size(); ++s)
    if (graph.steps[s].segment != step.segment)
      states[s] = graph.steps[s].segment < step.segment ? State::kHasRun : State::kHasNot;
  spread(id, State::kHasRun, work);
  spread(id, State::kHasNot, work);
  states[id] = State::kHasNot;

  network.reset(2);
  for (StepId s = 0; s < graph.steps.size(); ++s)
    if (states[s] == State::kFree)
      nodes[s] = network.addNode();
  for (StepId s = 0; s < graph.steps.size(); ++s)
    if (states[s] == State::kFree)
      for (StepId before : graph.steps[s].predecessors)
        if (states[before] == State::kFree)
          network.addEdge(nodes[s], nodes[before], MinCut::kInfinite);
  // What the step touches is alive at it in every order.
  uint64_t own = step.workspace();
  std::vector<StepId> dies(graph.values.size(), kNone);
  for (ValueId v : step.values) {
    own += graph.values[v].bytes;
    if (!graph.values[v].atEnd)
      dies[v] = id;
  }
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    work += 1 + graph.values[v].users.size();
    if (!std::binary_search(step.values.begin(), step.values.end(), v))
      own += addValue(graph.values[v]);
  }
  own -= matchInPlace(step, id, dies);

  MinCut::Flow flow = network.run(kSource, kSink, work, workLimit);
  if (ideal && flow.complete) {
    ideal->assign(graph.steps.size(), false);
    for (StepId s = 0; s < graph.steps.size(); ++s)
      (*ideal)[s] =
          states[s] == State::kHasRun || (states[s] == State::kFree && network.onSourceSide(nodes[s]));
  }
  return {own + flow.value, flow.complete};
}

} // namespace ortc::planning
