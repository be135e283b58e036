// The least time of small recomputation problems: A* over what has run and which values are at hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state is the set of steps that have run at least once and the set of values at hand. Moves: a step runs
// for the first time; a step runs again; a value is dropped. What nobody can want any more is dropped at
// once. Time is paid for second runs only. What is left out, and why no optimum is lost:
//
// - A value is dropped only in states in which some step that could run does not fit. Until then it costs nothing to
//   keep it: what a schedule can do with fewer values at hand, it can do with more of them, as long as they fit.
// - A step that fits at once is not tried with values dropped at it (to be overwritten in place): same reason.
// - A step runs again only if it makes a value that is missing and can still be of use.
// - Of two instances of a value only the newer one is at hand: the older is dropped before the run that makes the
//   newer.
// - A step that leaves nothing of use runs as soon as it is ready and fits, unless a useful step could not run again
//   after it. Any completion stays legal and needs no more bytes when this run is moved to its front.
// - Steps that touch no bytes are left out; one runs just before the first step that has to follow it.
//
// The bound: each value that is wanted but not at hand needs a run of its maker, each read of that run that
// is not at hand a run of its own, and so on, each step once.
#include "test/compiler/planning/ExactRecompute.h"

#include "compiler/planning/Graph.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <queue>
#include <unordered_map>

namespace ortc::planning::test {

namespace {

using Values = uint64_t; ///< a set of them
constexpr size_t kMostValues = 64, kMostSteps = 256;
using Steps = std::bitset<kMostSteps>;
constexpr uint64_t kNever = UINT64_MAX;

constexpr Values only(ValueId v) { return Values(1) << v; }

template <typename Visit> void forEach(Values values, Visit visit) {
  for (; values != 0; values &= values - 1)
    visit(ValueId(std::countr_zero(values)));
}

struct InPlacePair {
  Values read, write;
  uint64_t bytes;
};

/// A step that touches values or has a workspace. Numbered on their own.
struct SmallStep {
  StepId id = 0; ///< of the problem
  Values reads = 0, writes = 0;
  uint64_t workspace = 0, time = 0;
  bool repeatable = false;
  std::vector<InPlacePair> inPlace;
  Steps before;  ///< must have run
  Steps closing; ///< once one of these has run, this one does not run again
};

/// The problem as sets.
struct Small {
  std::vector<SmallStep> steps;
  std::vector<uint64_t> bytes;       ///< per value
  std::vector<uint32_t> maker;       ///< per value: the step that can make it again, or kNone
  std::vector<Steps> writers, users; ///< per value; users read or write it
  std::vector<Values> ancestors;     ///< per value: what can serve to make it again
  std::vector<std::vector<StepId>>
      led; ///< per step: steps without bytes that come before it, in source order
  Values atStart = 0, atEnd = 0, remakeable = 0;
  std::vector<ValueId> valueOf; ///< per buffer

  bool build(const Problem &problem, const std::vector<StepCost> &costs);
  void fix(const std::vector<StepId> &order);

private:
  void addSteps(const Problem &problem, const std::vector<StepCost> &costs, const Graph &graph);
  void order(const Problem &problem, const Graph &graph, const std::vector<uint32_t> &numberOf);
  void addMakers();
};

/// False where the problem is too large.
bool Small::build(const Problem &problem, const std::vector<StepCost> &costs) {
  for (const Step &step : problem.steps)
    if (step.inner)
      return false;
  Expected<Graph> graph =
      buildGraph(problem, std::vector<std::shared_ptr<const Plan>>(problem.steps.size()), true);
  if (!graph || graph->values.size() > kMostValues)
    return false;
  valueOf = graph->valueOf;
  for (ValueId v = 0; v < graph->values.size(); ++v) {
    bytes.push_back(graph->values[v].bytes);
    atStart |= graph->values[v].atStart ? only(v) : 0;
    atEnd |= graph->values[v].atEnd ? only(v) : 0;
  }
  addSteps(problem, costs, *graph);
  if (steps.size() > kMostSteps)
    return false;
  std::vector<uint32_t> numberOf(problem.steps.size(), kNone);
  for (uint32_t s = 0; s < steps.size(); ++s)
    numberOf[steps[s].id] = s;
  order(problem, *graph, numberOf);
  addMakers();
  return true;
}

void Small::addSteps(const Problem &problem, const std::vector<StepCost> &costs, const Graph &graph) {
  for (StepId id = 0; id < problem.steps.size(); ++id) {
    SmallStep step;
    step.id = id;
    step.workspace = graph.steps[id].workspace();
    step.time = costs[id].time;
    step.repeatable = costs[id].repeatable;
    for (BufferId b : problem.steps[id].reads)
      if (problem.buffers[b].bytes > 0)
        step.reads |= only(valueOf[b]);
    for (BufferId b : problem.steps[id].writes)
      if (problem.buffers[b].bytes > 0) {
        ValueId v = valueOf[b];
        step.writes |= only(v);
        // A second run must write whole values, in bytes of its own.
        step.repeatable &= graph.values[v].root == b && graph.values[v].writers == 1 &&
                           !graph.values[v].atStart && !(step.reads & only(v));
      }
    for (const InPlaceEdge &edge : graph.steps[id].inPlace)
      step.inPlace.push_back({only(edge.read), only(edge.write), edge.bytes});
    if ((step.reads | step.writes) != 0 || step.workspace > 0)
      steps.push_back(std::move(step));
  }
}

/// What comes before what, with steps without bytes left out but what they stand between kept.
void Small::order(const Problem &problem, const Graph &graph, const std::vector<uint32_t> &numberOf) {
  std::vector<Steps> before(problem.steps.size()), closed(problem.steps.size());
  std::vector<std::vector<bool>> empty(problem.steps.size(), std::vector<bool>(problem.steps.size()));
  auto follow = [&](StepId later, StepId earlier) {
    before[later] |= before[earlier];
    closed[later] |= closed[earlier];
    for (StepId s = 0; s < earlier; ++s)
      empty[later][s] = empty[later][s] || empty[earlier][s];
    if (numberOf[earlier] == kNone)
      empty[later][earlier] = true;
    else
      before[later].set(numberOf[earlier]);
  };
  led.resize(steps.size());
  for (StepId id = 0; id < problem.steps.size(); ++id) { // the source order is legal
    for (StepId earlier : graph.steps[id].predecessors)
      follow(id, earlier);
    for (StepId earlier : problem.steps[id].after)
      if (numberOf[earlier] != kNone)
        closed[id].set(numberOf[earlier]);
    for (StepId earlier = 0; earlier < id; ++earlier)
      if (problem.steps[earlier].segment < problem.steps[id].segment) {
        follow(id, earlier);
        if (numberOf[earlier] != kNone)
          closed[id].set(numberOf[earlier]);
      }
    uint32_t number = numberOf[id];
    if (number == kNone)
      continue;
    steps[number].before = before[id];
    for (uint32_t s = 0; s < steps.size(); ++s)
      if (closed[id][s])
        steps[s].closing.set(number);
    for (StepId s = 0; s < id; ++s)
      if (empty[id][s])
        led[number].push_back(s);
  }
}

void Small::addMakers() {
  maker.assign(bytes.size(), kNone);
  writers.resize(bytes.size());
  users.resize(bytes.size());
  for (uint32_t s = 0; s < steps.size(); ++s) {
    forEach(steps[s].writes, [&](ValueId v) {
      writers[v].set(s);
      if (steps[s].repeatable && !(atEnd & only(v))) {
        maker[v] = s;
        remakeable |= only(v);
      }
    });
    forEach(steps[s].reads | steps[s].writes, [&](ValueId v) { users[v].set(s); });
  }
  for (ValueId v = 0; v < bytes.size(); ++v) {
    Values found = 0;
    for (Values todo = only(v); todo != 0;) {
      Values next = 0;
      forEach(todo & remakeable, [&](ValueId of) { next |= steps[maker[of]].reads; });
      todo = next & ~found;
      found |= next;
    }
    ancestors.push_back(found);
  }
}

/// Lets every step follow the one before it in `order`.
void Small::fix(const std::vector<StepId> &order) {
  Steps before;
  for (StepId id : order)
    for (uint32_t s = 0; s < steps.size(); ++s)
      if (steps[s].id == id) {
        steps[s].before |= before;
        before.set(s);
      }
}

struct State {
  Steps ran;
  Values atHand = 0;
  bool operator==(const State &) const = default;
};

struct HashState {
  size_t operator()(const State &state) const {
    return std::hash<Steps>()(state.ran) ^ state.atHand * 0x9E3779B97F4A7C15u;
  }
};

/// `step` runs, or not if kNone, and `dropped` is not at hand afterwards.
struct Move {
  uint32_t step = kNone;
  Values dropped = 0;
};

struct Node {
  uint64_t time = kNever; ///< of second runs on the best way here
  const State *from = nullptr;
  Move move;
};

class Search {
public:
  Search(const Small &small, uint64_t budget, const ExactOptions &options)
      : small(small), budget(budget), options(options) {}

  ExactRecomputation::Outcome run();
  uint64_t time() const { return bound; }
  size_t states() const { return nodes.size(); }
  /// After run() has found the optimum: its runs, as numbers of small steps.
  std::vector<uint32_t> path() const;

private:
  struct Open {
    uint64_t bound, time;
    const State *state;
  };
  struct IsWorse {
    bool operator()(const Open &one, const Open &other) const {
      return one.bound != other.bound ? one.bound > other.bound
                                      : one.state->ran.count() < other.state->ran.count();
    }
  };

  uint64_t bytesOf(Values values) const;
  Values wanted(const Steps &ran) const;
  Values useful(const Steps &ran) const;
  bool isReady(const SmallStep &step, const State &state) const;
  uint64_t saved(const SmallStep &step, Values dying, size_t pair, Values read, Values written) const;
  bool fits(uint32_t step, const State &state, Values dropped) const;
  uint64_t remakingTime(const State &state) const;
  State apply(State state, const Move &move) const;
  void settle(State &state, std::vector<uint32_t> *ran) const;
  void reach(const State *from, const Move &move, uint64_t time);
  void expand(const State &state, uint64_t time);

  const Small &small;
  uint64_t budget;
  ExactOptions options;
  std::unordered_map<State, Node, HashState> nodes;
  std::priority_queue<Open, std::vector<Open>, IsWorse> open;
  const State *goal = nullptr;
  uint64_t bound = 0; ///< no schedule takes less beyond one run of each step
};

uint64_t Search::bytesOf(Values values) const {
  uint64_t sum = 0;
  forEach(values, [&](ValueId v) { sum += small.bytes[v]; });
  return sum;
}

/// Values that exist and that a first run, or the end, still needs.
Values Search::wanted(const Steps &ran) const {
  Values result = 0;
  for (ValueId v = 0; v < small.bytes.size(); ++v) {
    bool exists = (small.atStart & only(v)) != 0 || (small.writers[v] & ran).any();
    bool isUsed = (small.atEnd & only(v)) != 0 || (small.users[v] & ~ran).any();
    result |= exists && isUsed ? only(v) : 0;
  }
  return result;
}

/// The same, and what can serve to make one of those again. What first runs to come will make needs nothing
/// else: at the latest the reads of the next of them exist and are wanted.
Values Search::useful(const Steps &ran) const {
  Values result = wanted(ran);
  forEach(result, [&](ValueId v) { result |= small.ancestors[v]; });
  return result;
}

bool Search::isReady(const SmallStep &step, const State &state) const {
  return (step.before & ~state.ran).none();
}

/// Most bytes that writes in place save, over all matchings of pairs from `pair` on.
uint64_t Search::saved(const SmallStep &step, Values dying, size_t pair, Values read, Values written) const {
  if (pair == step.inPlace.size())
    return 0;
  const InPlacePair &next = step.inPlace[pair];
  uint64_t most = saved(step, dying, pair + 1, read, written);
  if ((next.read & dying & ~read) != 0 && (next.write & ~written) != 0)
    most = std::max(most, next.bytes + saved(step, dying, pair + 1, read | next.read, written | next.write));
  return most;
}

/// Whether the budget is kept while the step runs and the reads `dropped` die there.
bool Search::fits(uint32_t s, const State &state, Values dropped) const {
  const SmallStep &step = small.steps[s];
  uint64_t used = bytesOf(state.atHand | step.writes) + step.workspace;
  if (state.ran[s])
    used += bytesOf(step.writes & ~small.remakeable); // a copy beside what is alive at the end
  if (used <= budget)
    return true;
  if (step.inPlace.empty())
    return false;
  Steps ran = state.ran;
  ran.set(s);
  Values dying = (step.reads & ~useful(ran)) | dropped;
  return used - saved(step, dying, 0, 0, 0) <= budget;
}

/// The bound: see the head of this file. kNever where a value is lost.
uint64_t Search::remakingTime(const State &state) const {
  uint64_t time = 0;
  Values missing = wanted(state.ran) & ~state.atHand, seen = state.atHand;
  Steps again;
  while (missing & ~seen) {
    ValueId v = ValueId(std::countr_zero(missing & ~seen));
    seen |= only(v);
    uint32_t s = small.maker[v];
    if (s == kNone || (small.steps[s].closing & state.ran).any())
      return kNever;
    if (!again[s]) {
      again.set(s);
      time += small.steps[s].time;
      missing |= small.steps[s].reads;
    }
  }
  return time;
}

State Search::apply(State state, const Move &move) const {
  if (move.step != kNone) {
    state.ran.set(move.step);
    state.atHand |= small.steps[move.step].writes;
  }
  state.atHand &= ~move.dropped;
  state.atHand &= useful(state.ran);
  return state;
}

/// Runs what leaves nothing of use.
void Search::settle(State &state, std::vector<uint32_t> *order) const {
  if (!options.shortcuts)
    return;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t s = 0; s < small.steps.size(); ++s) {
      const SmallStep &step = small.steps[s];
      if (state.ran[s] || (step.reads & ~state.atHand) != 0 || !isReady(step, state))
        continue;
      Steps ran = state.ran;
      ran.set(s);
      Values use = useful(ran), closed = 0;
      for (uint32_t e = 0; e < small.steps.size(); ++e)
        if (small.steps[e].closing[s])
          closed |= small.steps[e].writes & small.remakeable;
      if (((step.writes | closed) & use) != 0 || !fits(s, state, 0))
        continue;
      state = apply(state, {s, 0});
      if (order)
        order->push_back(s);
      again = true;
    }
  }
}

void Search::reach(const State *from, const Move &move, uint64_t time) {
  State state = apply(from ? *from : State{{}, small.atStart}, move);
  settle(state, nullptr);
  uint64_t rest = remakingTime(state);
  if (rest == kNever)
    return;
  auto [at, isNew] = nodes.try_emplace(state);
  if (at->second.time <= time)
    return;
  at->second = {time, from, move};
  open.push({time + (options.shortcuts ? rest : 0), time, &at->first});
}

void Search::expand(const State &state, uint64_t time) {
  Values use = useful(state.ran);
  bool isTight = !options.shortcuts;
  for (uint32_t s = 0; s < small.steps.size(); ++s) {
    const SmallStep &step = small.steps[s];
    bool isFirst = !state.ran[s];
    if ((step.reads & ~state.atHand) != 0 || (isFirst && !isReady(step, state)))
      continue;
    if (!isFirst &&
        (!step.repeatable || (step.closing & state.ran).any() || (step.writes & use & ~state.atHand) == 0))
      continue;
    uint64_t after = time + (isFirst ? 0 : step.time);
    bool fitsAtOnce = fits(s, state, 0);
    if (fitsAtOnce)
      reach(&state, {s, 0}, after);
    isTight |= !fitsAtOnce;
    if (fitsAtOnce && options.shortcuts)
      continue;
    Values overwritten = 0;
    for (const InPlacePair &pair : step.inPlace)
      overwritten |= pair.read;
    for (Values dropped = overwritten; dropped != 0; dropped = (dropped - 1) & overwritten)
      if (fits(s, state, dropped))
        reach(&state, {s, dropped}, after);
  }
  if (isTight)
    forEach(state.atHand, [&](ValueId v) { reach(&state, {kNone, only(v)}, time); });
}

ExactRecomputation::Outcome Search::run() {
  using Outcome = ExactRecomputation::Outcome;
  if (bytesOf(small.atStart & useful({})) > budget)
    return Outcome::kImpossible;
  reach(nullptr, {}, 0);
  while (!open.empty()) {
    Open next = open.top();
    bound = std::max(bound, next.bound);
    if (nodes.size() >= options.states)
      return Outcome::kGaveUp;
    open.pop();
    if (nodes.at(*next.state).time < next.time)
      continue; // since reached in less time
    if (next.state->ran.count() == small.steps.size()) {
      goal = next.state;
      bound = next.time;
      return Outcome::kOptimal;
    }
    expand(*next.state, next.time);
  }
  return Outcome::kImpossible;
}

std::vector<uint32_t> Search::path() const {
  std::vector<const State *> states;
  for (const State *at = goal; at; at = nodes.at(*at).from)
    states.push_back(at);
  std::vector<uint32_t> order;
  for (size_t i = states.size(); i-- > 0;) {
    const Node &node = nodes.at(*states[i]);
    if (node.move.step != kNone)
      order.push_back(node.move.step);
    State state = apply(node.from ? *node.from : State{{}, small.atStart}, node.move);
    settle(state, &order);
  }
  return order;
}

/// The runs of the problem, every read from the newest instance.
std::vector<StepRun> runsOf(const Problem &problem, const Small &small, const std::vector<uint32_t> &path) {
  std::vector<StepRun> runs;
  std::vector<bool> ran(problem.steps.size());
  std::vector<uint32_t> newest(small.bytes.size(), kNone);
  auto add = [&](StepId id) {
    StepRun run{id, {}};
    for (BufferId b : problem.steps[id].reads)
      run.sources.push_back(problem.buffers[b].bytes > 0 ? newest[small.valueOf[b]] : kNone);
    ran[id] = true;
    runs.push_back(std::move(run));
  };
  for (uint32_t s : path) {
    for (StepId empty : small.led[s])
      if (!ran[empty])
        add(empty);
    forEach(small.steps[s].writes & small.remakeable, [&](ValueId v) { newest[v] = uint32_t(runs.size()); });
    add(small.steps[s].id);
  }
  for (StepId id = 0; id < ran.size(); ++id)
    if (!ran[id])
      add(id);
  return runs;
}

} // namespace

ExactRecomputation recomputeExactly(const Problem &problem, const std::vector<StepCost> &costs,
                                    uint64_t budget, const ExactOptions &options) {
  ExactRecomputation result;
  for (const StepCost &cost : costs)
    result.time += cost.time;
  Small small;
  if (!small.build(problem, costs))
    return result;
  small.fix(options.order);
  Search search(small, budget, options);
  result.outcome = search.run();
  result.time += search.time();
  result.states = search.states();
  if (result.outcome == ExactRecomputation::Outcome::kOptimal)
    result.runs = runsOf(problem, small, search.path());
  return result;
}

} // namespace ortc::planning::test
