// Looks through all orders of the steps: a better one, or the proof that there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/ExactOrder.h"

#include "compiler/planning/Liveness.h"
#include "compiler/planning/order/LateSteps.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace ortc::planning {

namespace {

class AllOrders {
public:
  AllOrders(const Graph &graph, const LateSteps &late, uint64_t limit, uint64_t workLimit)
      : graph(graph), late(late), limit(limit), workLimit(workLimit), missing(graph.steps.size(), 0),
        followers(graph.steps.size()), started(graph.values.size()), wanted(graph.values.size()),
        dies(graph.values.size(), kNone), finished(graph.steps.size() / 8 + 1, '\0') {
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      started[v] = graph.values[v].atStart;
      wanted[v] = uint32_t(graph.values[v].users.size()) + graph.values[v].atEnd;
      live += graph.values[v].atStart ? graph.values[v].bytes : 0;
    }
    for (StepId s = 0; s < graph.steps.size(); ++s) {
      if (graph.steps[s].segment >= stepsOf.size())
        stepsOf.resize(graph.steps[s].segment + 1);
      if (late.isLate[s])
        continue;
      stepsOf[graph.steps[s].segment].push_back(s);
      waitFor(s);
    }
  }

  enum class Answer { kFound, kNone, kOutOfWork };

  /// An order whose peak is at most the limit.
  Answer run() {
    enter(0);
    while (order.size() < graph.steps.size()) {
      if (work > workLimit)
        return Answer::kOutOfWork;
      Level &level = levels.back();
      if (level.next == level.choices.size()) {
        undoTo(level.begin);
        levels.pop_back();
        if (levels.empty())
          return Answer::kNone;
        continue;
      }
      size_t begin = order.size();
      finishWithLate(level.choices[level.next++]);
      enter(begin);
    }
    return Answer::kFound;
  }

  const Order &found() const { return order; }
  uint64_t spent() const { return work; }

private:
  /// What can come next after a set of finished steps; the steps from `begin` on are the choice that led there and
  /// what ran without one.
  struct Level {
    size_t begin = 0, next = 0;
    std::vector<StepId> choices;
  };
  struct Use {
    uint64_t bytes = 0; ///< most at a step
    uint64_t after = 0; ///< alive behind it
  };

  /// Counts the steps that are not late and have to be finished before `id` and the late ones that it waits for.
  void waitFor(StepId id) {
    std::vector<StepId> all = late.before[id], predecessors;
    all.push_back(id);
    for (StepId s : all)
      for (StepId p : graph.steps[s].predecessors)
        if (!late.isLate[p])
          predecessors.push_back(p);
    std::sort(predecessors.begin(), predecessors.end());
    predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
    missing[id] = uint32_t(predecessors.size());
    for (StepId p : predecessors)
      followers[p].push_back(id);
  }

  Use look(StepId id) {
    const GraphStep &step = graph.steps[id];
    uint64_t born = 0, freed = 0;
    for (ValueId v : step.values) {
      born += started[v] == 0 ? graph.values[v].bytes : 0;
      if (wanted[v] == 1) {
        freed += graph.values[v].bytes;
        dies[v] = id;
      }
    }
    Use use{live + born + step.workspace() - matchInPlace(step, id, dies), live + born - freed};
    for (ValueId v : step.values)
      dies[v] = kNone;
    work += 1 + step.values.size();
    return use;
  }

  void finish(StepId id, uint64_t after) {
    live = after;
    for (ValueId v : graph.steps[id].values) {
      ++started[v];
      --wanted[v];
    }
    for (StepId s : followers[id])
      --missing[s];
    order.push_back(id);
    finished[id / 8] ^= char(1 << id % 8);
  }

  /// Runs a step behind the late ones that it still waits for; the use of all of them.
  Use finishWithLate(StepId id) {
    Use most;
    auto run = [&](StepId s) {
      Use use = look(s);
      finish(s, use.after);
      most = {std::max(most.bytes, use.bytes), use.after};
    };
    for (StepId s : late.before[id])
      if (!isFinished(s))
        run(s);
    run(id);
    return most;
  }

  Use lookWithLate(StepId id) {
    const std::vector<StepId> &list = late.before[id];
    work += list.size() / 8;
    if (std::all_of(list.begin(), list.end(), [&](StepId s) { return isFinished(s); }))
      return look(id);
    size_t count = order.size();
    Use use = finishWithLate(id);
    undoTo(count);
    return use;
  }

  void undoTo(size_t count) {
    while (order.size() > count) {
      StepId id = order.back();
      order.pop_back();
      finished[id / 8] ^= char(1 << id % 8);
      for (StepId s : followers[id])
        ++missing[s];
      for (ValueId v : graph.steps[id].values) {
        --started[v];
        ++wanted[v];
        uint64_t bytes = graph.values[v].bytes;
        live -= started[v] == 0 ? bytes : 0;
        live += wanted[v] == 1 ? bytes : 0;
      }
    }
  }

  bool isFinished(StepId id) const { return finished[id / 8] >> id % 8 & 1; }

  /// Runs what needs no choice, and notes the choices that are left; none where this set of steps has been seen.
  void enter(size_t begin) {
    Level level;
    level.begin = begin;
    for (bool again = true; again;) {
      again = false;
      level.choices.clear();
      size_t segment = 0;
      while (segment < stepsOf.size() &&
             std::all_of(
                 stepsOf[segment].begin(), stepsOf[segment].end(), [&](StepId s) { return isFinished(s); }))
        ++segment;
      if (segment == stepsOf.size())
        break;
      work += stepsOf[segment].size() / 8 + 1;
      for (StepId s : stepsOf[segment]) {
        if (isFinished(s) || missing[s] > 0)
          continue;
        Use use = lookWithLate(s);
        if (use.bytes > limit)
          continue;
        if (use.after <= live) {
          finishWithLate(s);
          again = true;
        } else {
          level.choices.push_back(s);
        }
      }
    }
    if (!seen.insert(finished).second)
      level.choices.clear();
    levels.push_back(std::move(level));
  }

  const Graph &graph;
  const LateSteps &late;
  uint64_t limit, workLimit, work = 0, live = 0;
  std::vector<uint32_t> missing; ///< per step that is not late: what it waits for and is not finished
  std::vector<std::vector<StepId>> followers; ///< per step: those that wait for it
  std::vector<uint32_t> started, wanted;      ///< per value: users that are finished, and those that are not
  std::vector<StepId> dies;                   ///< per value, for matchInPlace()
  std::vector<std::vector<StepId>> stepsOf;   ///< per segment: the steps that are not late
  Order order;
  std::string finished; ///< a bit for each step
  std::vector<Level> levels;
  std::unordered_set<std::string> seen;
};

} // namespace

bool searchAllOrders(const Graph &graph, Order &order, uint64_t &peak, uint64_t bound, uint64_t workLimit,
                     uint64_t &work) {
  if (workLimit == 0 || peak <= bound)
    return peak <= bound;
  uint64_t spent = 0;
  LateSteps late(graph);
  while (peak > bound && spent < workLimit) {
    AllOrders orders(graph, late, peak - 1, workLimit - spent);
    AllOrders::Answer answer = orders.run();
    spent += orders.spent();
    work += orders.spent();
    if (answer != AllOrders::Answer::kFound)
      return answer == AllOrders::Answer::kNone;
    order = orders.found();
    peak = peakOf(graph, order);
  }
  return peak <= bound;
}

} // namespace ortc::planning
