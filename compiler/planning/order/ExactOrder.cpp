// Looks through all orders of the steps: a better one, or the proof that there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/ExactOrder.h"

#include "compiler/planning/Liveness.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace ortc::planning {

namespace {

class AllOrders {
public:
  AllOrders(const Graph &graph, uint64_t limit, uint64_t workLimit)
      : graph(graph), limit(limit), workLimit(workLimit), started(graph.values.size()),
        wanted(graph.values.size()), dies(graph.values.size(), kNone),
        finished(graph.steps.size() / 8 + 1, '\0') {
    for (const GraphStep &step : graph.steps)
      missing.push_back(uint32_t(step.predecessors.size()));
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      started[v] = graph.values[v].atStart;
      wanted[v] = uint32_t(graph.values[v].users.size()) + graph.values[v].atEnd;
      live += graph.values[v].atStart ? graph.values[v].bytes : 0;
    }
    for (StepId s = 0; s < graph.steps.size(); ++s) {
      if (graph.steps[s].segment >= stepsOf.size())
        stepsOf.resize(graph.steps[s].segment + 1);
      stepsOf[graph.steps[s].segment].push_back(s);
    }
  }

  enum class Answer { kFound, kNone, kOutOfWork };

  /// An order whose peak is at most the limit.
  Answer run() {
    enter();
    while (order.size() < graph.steps.size()) {
      if (work > workLimit)
        return Answer::kOutOfWork;
      Level &level = levels.back();
      if (level.next == level.choices.size()) {
        while (order.size() > level.begin)
          undo();
        levels.pop_back();
        if (levels.empty())
          return Answer::kNone;
        undo(); // the choice that led there
        continue;
      }
      finish(level.choices[level.next++]);
      enter();
    }
    return Answer::kFound;
  }

  const Order &found() const { return order; }
  uint64_t spent() const { return work; }

private:
  /// What can come next after a set of finished steps; the steps from `begin` on ran without a choice.
  struct Level {
    size_t begin = 0, next = 0;
    std::vector<StepId> choices;
  };
  struct Use {
    uint64_t bytes = 0; ///< at the step
    uint64_t after = 0; ///< alive behind it
  };

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

  void finish(StepId id) {
    live = look(id).after;
    for (ValueId v : graph.steps[id].values) {
      ++started[v];
      --wanted[v];
    }
    for (StepId s : graph.steps[id].successors)
      --missing[s];
    order.push_back(id);
    finished[id / 8] ^= char(1 << id % 8);
  }

  void undo() {
    StepId id = order.back();
    order.pop_back();
    finished[id / 8] ^= char(1 << id % 8);
    for (StepId s : graph.steps[id].successors)
      ++missing[s];
    for (ValueId v : graph.steps[id].values) {
      --started[v];
      ++wanted[v];
      uint64_t bytes = graph.values[v].bytes;
      live -= started[v] == 0 ? bytes : 0;
      live += wanted[v] == 1 ? bytes : 0;
    }
  }

  bool isFinished(StepId id) const { return finished[id / 8] >> id % 8 & 1; }

  /// Runs what needs no choice, and notes the choices that are left; none where this set of steps has been seen.
  void enter() {
    Level level;
    level.begin = order.size();
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
        Use use = look(s);
        if (use.bytes > limit)
          continue;
        if (use.after <= live) {
          finish(s);
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
  uint64_t limit, workLimit, work = 0, live = 0;
  std::vector<uint32_t> missing;            ///< per step: predecessors that are not finished
  std::vector<uint32_t> started, wanted;    ///< per value: users that are finished, and those that are not
  std::vector<StepId> dies;                 ///< per value, for matchInPlace()
  std::vector<std::vector<StepId>> stepsOf; ///< per segment
  Order order;
  std::string finished; ///< a bit for each step
  std::vector<Level> levels;
  std::unordered_set<std::string> seen;
};

} // namespace

bool searchAllOrders(const Graph &graph, Order &order, uint64_t &peak, uint64_t bound, uint64_t workLimit,
                     uint64_t &work) {
  uint64_t spent = 0;
  while (peak > bound && spent < workLimit) {
    AllOrders orders(graph, peak - 1, workLimit - spent);
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
