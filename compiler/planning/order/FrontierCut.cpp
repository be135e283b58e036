// What to keep and what to make again at one moment of a schedule: a minimum cut between bytes and time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/FrontierCut.h"

#include "compiler/planning/Liveness.h"

#include <algorithm>

namespace ortc::planning {

static constexpr MinCut::Node kSource = 0, kSink = 1;
/// Above every sum of times, and low enough that sums of capacities fit.
static constexpr uint64_t kMostCapacity = uint64_t(1) << 45;

FrontierCut::FrontierCut(const RecomputeGraph &graph)
    : graph(graph), hasRun(graph.steps.size()), isFree(graph.maker.size()),
      decisions(graph.maker.size(), Decision::kOpen), valueNode(graph.maker.size(), kNone),
      stepNode(graph.steps.size(), kNone) {}

void FrontierCut::clear() {
  fixed = 0;
  std::fill(isFree.begin(), isFree.end(), 0);
  std::fill(decisions.begin(), decisions.end(), Decision::kOpen);
  wanted.clear();
}

/// Notes a value that a waiting step reads and one that has run has made.
void FrontierCut::want(ValueId v) {
  if (isFree[v])
    return;
  if (graph.maker[v] == kNone) {
    isFree[v] = 1;
    fixed += graph.graph.values[v].bytes;
  } else {
    wanted.push_back(v);
  }
}

void FrontierCut::setFrontier(const std::vector<bool> &ran) {
  clear();
  for (StepId s = 0; s < hasRun.size(); ++s)
    hasRun[s] = ran[s];
  for (ValueId v = 0; v < graph.maker.size(); ++v) {
    const Value &value = graph.graph.values[v];
    bool made = value.atStart, waited = value.atEnd;
    for (StepId user : value.users)
      (hasRun[user] ? made : waited) = true;
    if (made && waited)
      want(v);
  }
  build();
}

void FrontierCut::setStep(StepId id) {
  clear();
  std::fill(hasRun.begin(), hasRun.end(), 0);
  enum : uint8_t { kOther, kRan, kWaits };
  auto spread = [&](const std::vector<StepId> GraphStep::*list, uint8_t state) {
    stack.assign(1, id);
    while (!stack.empty()) {
      const GraphStep &step = graph.graph.steps[stack.back()];
      stack.pop_back();
      for (StepId other : step.*list)
        if (hasRun[other] == kOther) {
          hasRun[other] = state;
          stack.push_back(other);
        }
    }
  };
  spread(&GraphStep::predecessors, kRan);
  spread(&GraphStep::successors, kWaits);
  const GraphStep &step = graph.graph.steps[id];
  fixed = step.workspace();
  std::vector<StepId> dies(graph.maker.size(), kNone);
  for (ValueId v : step.values) {
    fixed += graph.graph.values[v].bytes;
    isFree[v] = 1;
    if (!graph.graph.values[v].atEnd)
      dies[v] = id;
  }
  fixed -= matchInPlace(step, id, dies);
  for (ValueId v = 0; v < graph.maker.size(); ++v) {
    const Value &value = graph.graph.values[v];
    bool made = value.atStart, waited = value.atEnd;
    for (StepId user : value.users) {
      made |= hasRun[user] == kRan;
      waited |= hasRun[user] == kWaits;
    }
    if (made && waited)
      want(v);
  }
  for (uint8_t &state : hasRun)
    state = state == kRan;
  build();
}

/// Everything that the choice can touch: wanted values, their makers, what these read, and so on.
void FrontierCut::build() {
  for (ValueId v : considered)
    valueNode[v] = kNone;
  for (StepId s : makers)
    stepNode[s] = kNone;
  considered.clear();
  makers.clear();
  uint32_t nodes = 2;
  auto add = [&](ValueId v) {
    if (isFree[v] || valueNode[v] != kNone)
      return;
    valueNode[v] = nodes++;
    considered.push_back(v);
  };
  for (ValueId v : wanted)
    add(v);
  for (size_t i = 0; i < considered.size(); ++i) {
    StepId maker = graph.maker[considered[i]];
    if (maker == kNone || stepNode[maker] != kNone)
      continue;
    stepNode[maker] = nodes++;
    makers.push_back(maker);
    for (ValueId u : graph.steps[maker].reads)
      add(u);
  }
}

FrontierCut::Choice FrontierCut::choose(Price price, const std::vector<uint32_t> &weights, uint64_t &work) {
  network.reset(uint32_t(2 + considered.size() + makers.size()));
  for (ValueId v : wanted)
    network.addEdge(kSource, valueNode[v], MinCut::kInfinite);
  bool timeIsFree = price == kTimeIsFree;
  for (ValueId v : considered) {
    unsigned __int128 cost =
        (unsigned __int128)graph.graph.values[v].bytes * (timeIsFree ? Price(1) << kPriceShift : price);
    if (!weights.empty())
      cost = cost * weights[v] >> 8;
    cost >>= kPriceShift;
    uint64_t capacity = cost < kMostCapacity ? uint64_t(cost) : kMostCapacity;
    if (decisions[v] != Decision::kOpen)
      capacity = decisions[v] == Decision::kKept ? 0 : MinCut::kInfinite;
    network.addEdge(valueNode[v], graph.maker[v] == kNone ? kSink : stepNode[graph.maker[v]], capacity);
  }
  for (StepId s : makers) {
    network.addEdge(stepNode[s], kSink, timeIsFree ? 0 : graph.steps[s].time);
    for (ValueId u : graph.steps[s].reads)
      if (valueNode[u] != kNone)
        network.addEdge(stepNode[s], valueNode[u], MinCut::kInfinite);
  }
  work += considered.size() + makers.size();
  Choice choice;
  choice.cost = network.run(kSource, kSink, work, UINT64_MAX).value;
  for (ValueId v : considered)
    if (decisions[v] != Decision::kKept && isKept(v))
      choice.keptBytes += graph.graph.values[v].bytes;
  for (StepId s : makers)
    if (network.onSourceSide(stepNode[s]))
      choice.time += graph.steps[s].time;
  return choice;
}

bool FrontierCut::isKept(ValueId v) const {
  return network.onSourceSide(valueNode[v]) &&
         (graph.maker[v] == kNone || !network.onSourceSide(stepNode[graph.maker[v]]));
}

} // namespace ortc::planning
