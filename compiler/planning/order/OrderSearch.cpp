// Chooses the order of the steps: candidates, lower bound, local search.
//
// The search works on the first step whose use is the peak. Its minimum cut (OrderBound) either proves the
// peak optimal or says which steps should have run by then; the order is partitioned that way and kept if
// better. Else values that are alive across the step but not used there are shortened: the step that makes
// one is delayed past the peak together with everything that depends on it, or all users that follow are
// pulled before it with everything they need. A move is judged by (peak, positions at the peak, sum of use
// over the window), which never rises, so the result is never worse than the best candidate.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/OrderSearch.h"

#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/Liveness.h"
#include "compiler/planning/order/ExactOrder.h"
#include "compiler/planning/order/OrderBound.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace ortc::planning {

namespace {

/// Computes the bound, from the steps with the highest use downwards: the bound at a step is at most its
/// use in any order, so no step whose use is at most the bound so far can raise it.
class BoundSearch {
public:
  BoundSearch(const Graph &graph, const PlanOptions &options, OrderChoice &choice)
      : graph(graph), limit(options.boundWork), choice(choice), known(graph.steps.size(), false) {}

  /// Bound at `step`; false when the limit is spent.
  bool at(StepId step, std::vector<bool> *ideal) {
    if (choice.boundWork >= limit)
      return false;
    if (!cuts)
      cuts.emplace(graph);
    OrderBound::Result result = cuts->at(step, choice.boundWork, limit, ideal);
    choice.bound = std::max(choice.bound, result.bytes);
    known[step] = result.complete;
    return result.complete;
  }

  void finish() {
    Liveness liveness(graph, choice.order);
    std::vector<uint32_t> positions(choice.order.size());
    std::iota(positions.begin(), positions.end(), 0u);
    std::sort(positions.begin(), positions.end(), [&](uint32_t x, uint32_t y) {
      return liveness.usage[x] != liveness.usage[y] ? liveness.usage[x] > liveness.usage[y] : x < y;
    });
    for (uint32_t p : positions) {
      if (liveness.usage[p] <= choice.bound)
        break;
      if (!known[choice.order[p]] && !at(choice.order[p], nullptr)) {
        choice.boundComplete = false;
        break;
      }
    }
  }

private:
  const Graph &graph;
  uint64_t limit;
  OrderChoice &choice;
  std::vector<bool> known; ///< per step: its bound is in choice.bound
  std::optional<OrderBound> cuts;
};

/// What a move is judged by, in this order. `area` is scaled so that sums fit.
struct Score {
  uint64_t peak = 0;
  uint64_t positionsAtPeak = 0;
  uint64_t area = 0;

  bool operator<(const Score &other) const {
    if (peak != other.peak)
      return peak < other.peak;
    if (positionsAtPeak != other.positionsAtPeak)
      return positionsAtPeak < other.positionsAtPeak;
    return area < other.area;
  }
};

class LocalSearch {
public:
  LocalSearch(const Graph &graph, const PlanOptions &options, OrderChoice &choice, BoundSearch &bound)
      : graph(graph), limit(options.orderWork), choice(choice), bound(bound), live(graph, choice.order),
        marked(graph.steps.size(), 0) {
    while ((graph.totalBytes >> shift) > (uint64_t(1) << 40))
      ++shift;
    refresh();
  }

  void run() {
    while (choice.peak > choice.bound && choice.searchWork < limit) {
      uint32_t peakAt = live.peakPosition;
      std::vector<bool> ideal;
      if (!cutTried(choice.order[peakAt])) {
        bool known = bound.at(choice.order[peakAt], &ideal);
        if (choice.peak <= choice.bound)
          return;
        if (known && tryIdeal(peakAt, ideal))
          continue;
      }
      if (!improveLocally(peakAt))
        return;
    }
  }

private:
  static constexpr int kMaxFailures = 400; ///< moves in a row that fail at one peak before giving up

  bool cutTried(StepId step) {
    // One cut per step and order; an order is identified by its number of accepted moves.
    bool tried = lastCutStep == step && lastCutAccepted == accepted;
    lastCutStep = step;
    lastCutAccepted = accepted;
    return tried;
  }

  uint64_t areaOf(uint64_t usage) const { return usage >> shift; }

  void refresh() {
    size_t count = choice.order.size();
    before.assign(count + 1, 0);
    after.assign(count + 1, 0);
    liveBefore.assign(count + 1, 0);
    uint64_t bytes = 0;
    for (const Value &value : graph.values)
      bytes += value.atStart ? value.bytes : 0;
    for (uint32_t p = 0; p < count; ++p) {
      before[p + 1] = std::max(before[p], live.usage[p]);
      liveBefore[p] = bytes;
      StepId s = choice.order[p];
      for (ValueId v : graph.steps[s].values) {
        bytes += live.firstUse[v] == s ? graph.values[v].bytes : 0;
        bytes -= live.lastUse[v] == s ? graph.values[v].bytes : 0;
      }
    }
    for (uint32_t p = uint32_t(count); p-- > 0;)
      after[p] = std::max(after[p + 1], live.usage[p]);
    choice.peak = live.peak;
    choice.searchWork += 4 * count + graph.values.size();
  }

  /// Reorders by a minimum cut: what the ideal holds, the step, the rest, each in the present order.
  bool tryIdeal(uint32_t peakAt, const std::vector<bool> &ideal) {
    Order order;
    order.reserve(choice.order.size());
    for (StepId s : choice.order)
      if (ideal[s])
        order.push_back(s);
    order.push_back(choice.order[peakAt]);
    for (StepId s : choice.order)
      if (!ideal[s] && s != choice.order[peakAt])
        order.push_back(s);
    Liveness next(graph, order);
    choice.searchWork += 4 * order.size();
    if (!(scoreOf(next.usage, next.peak) < scoreOf(live.usage, live.peak)))
      return false;
    choice.order = std::move(order);
    live = std::move(next);
    ++accepted;
    refresh();
    return true;
  }

  Score scoreOf(const std::vector<uint64_t> &usage, uint64_t peak) const {
    Score score{peak, 0, 0};
    for (uint64_t bytes : usage)
      score.positionsAtPeak += bytes == peak;
    return score; // area is left out: a cut is kept for the peak alone
  }

  /// Tries moves at the peak; false when none helps. Returns at the first that lowers or moves the peak.
  bool improveLocally(uint32_t peakAt) {
    std::vector<ValueId> idle = idleValues(peakAt);
    if (idle.empty())
      return false;
    for (int failures = 0; failures < kMaxFailures && choice.searchWork < limit;) {
      ValueId v = idle[random.below(uint32_t(idle.size()))];
      bool accepted = random.below(2) == 0 ? delayMaker(v, peakAt) : pullUsers(v, peakAt);
      ++choice.searchWork;
      if (accepted)
        return true;
      ++failures;
    }
    return false;
  }

  /// Values alive at the position that its step does not touch.
  std::vector<ValueId> idleValues(uint32_t at) {
    std::vector<ValueId> idle;
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      bool begun = live.firstUse[v] == kNone || live.position[live.firstUse[v]] < at;
      bool goesOn = live.lastUse[v] == kNone || live.position[live.lastUse[v]] > at;
      if (begun && goesOn && !(live.firstUse[v] == kNone && live.lastUse[v] == kNone) &&
          !std::binary_search(graph.steps[choice.order[at]].values.begin(),
                              graph.steps[choice.order[at]].values.end(), v))
        idle.push_back(v);
    }
    choice.searchWork += graph.values.size();
    return idle;
  }

  /// Moves the step that makes `v`, and what depends on it, from before the peak to after it.
  bool delayMaker(ValueId v, uint32_t peakAt) {
    if (live.firstUse[v] == kNone)
      return false;
    uint32_t low = live.position[live.firstUse[v]], high = peakAt;
    uint32_t segment = graph.steps[choice.order[peakAt]].segment;
    if (graph.steps[choice.order[low]].segment != segment)
      return false;
    startMarks();
    mark(choice.order[low]);
    for (uint32_t p = low + 1; p <= high; ++p) {
      StepId s = choice.order[p];
      choice.searchWork += 1 + graph.steps[s].predecessors.size();
      if (dependsOnMarked(s))
        mark(s);
    }
    if (isMarked(choice.order[peakAt]))
      return false;
    // Half of the time as late as possible instead of right behind the peak.
    if (random.below(2) == 0)
      while (high + 1 < choice.order.size() && high - peakAt < 256) {
        StepId s = choice.order[high + 1];
        choice.searchWork += 1 + graph.steps[s].predecessors.size();
        if (dependsOnMarked(s) || graph.steps[s].segment != segment)
          break;
        ++high;
      }
    return tryWindow(low, high, /*markedFirst=*/false);
  }

  /// Moves all users of `v` behind the peak, and what they need, to before it.
  bool pullUsers(ValueId v, uint32_t peakAt) {
    if (live.lastUse[v] == kNone)
      return false;
    uint32_t high = live.position[live.lastUse[v]];
    uint32_t segment = graph.steps[choice.order[peakAt]].segment;
    if (graph.steps[choice.order[high]].segment != segment)
      return false;
    startMarks();
    for (StepId s : graph.values[v].users)
      if (live.position[s] > peakAt)
        mark(s);
    for (uint32_t p = high + 1; p-- > peakAt;) {
      StepId s = choice.order[p];
      choice.searchWork += 1 + graph.steps[s].successors.size();
      if (!isMarked(s) && markedDependsOn(s, peakAt, high)) {
        if (p == peakAt)
          return false;
        mark(s);
      }
    }
    return tryWindow(peakAt, high, /*markedFirst=*/true);
  }

  /// Reorders positions [low, high]: marked steps first or last, else in the present order.
  bool tryWindow(uint32_t low, uint32_t high, bool markedFirst) {
    window.clear();
    for (bool pass : {markedFirst, !markedFirst})
      for (uint32_t p = low; p <= high; ++p)
        if (isMarked(choice.order[p]) == pass)
          window.push_back(choice.order[p]);
    old.assign(choice.order.begin() + low, choice.order.begin() + high + 1);
    uint64_t outside = std::max(before[low], after[high + 1]);
    Score present = windowScore(outside, [&](uint32_t i) { return live.usage[low + i]; });
    place(window, low);
    relive(window);
    windowUsage.resize(window.size());
    uint64_t bytes = liveBefore[low];
    for (uint32_t i = 0; i < window.size(); ++i) {
      const GraphStep &step = graph.steps[window[i]];
      choice.searchWork += 2 + step.values.size();
      for (ValueId v : step.values)
        bytes += live.firstUse[v] == window[i] ? graph.values[v].bytes : 0;
      windowUsage[i] = bytes + step.workspace() - matchInPlace(step, window[i], live.lastUse);
      for (ValueId v : step.values)
        bytes -= live.lastUse[v] == window[i] ? graph.values[v].bytes : 0;
    }
    Score next = windowScore(outside, [&](uint32_t i) { return windowUsage[i]; });
    if (!(next < present)) {
      place(old, low);
      relive(old);
      return false;
    }
    std::copy(windowUsage.begin(), windowUsage.end(), live.usage.begin() + low);
    live.peakPosition = uint32_t(std::max_element(live.usage.begin(), live.usage.end()) - live.usage.begin());
    live.peak = live.usage[live.peakPosition];
    ++accepted;
    refresh();
    return true;
  }

  template <typename Usage> Score windowScore(uint64_t outside, Usage usage) const {
    Score score{outside, 0, 0};
    for (uint32_t i = 0; i < window.size(); ++i)
      score.peak = std::max(score.peak, usage(i));
    for (uint32_t i = 0; i < window.size(); ++i) {
      score.positionsAtPeak += usage(i) == score.peak;
      score.area += areaOf(usage(i));
    }
    return score;
  }

  void place(const std::vector<StepId> &steps, uint32_t low) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      choice.order[low + i] = steps[i];
      live.position[steps[i]] = low + i;
    }
  }

  /// First and last uses of the values that moved steps touch.
  void relive(const std::vector<StepId> &steps) {
    for (StepId s : steps) {
      if (!isMarked(s))
        continue;
      for (ValueId v : graph.steps[s].values) {
        const Value &value = graph.values[v];
        choice.searchWork += value.users.size();
        StepId first = value.users.front(), last = first;
        for (StepId user : value.users) {
          if (live.position[user] < live.position[first])
            first = user;
          if (live.position[user] > live.position[last])
            last = user;
        }
        live.firstUse[v] = value.atStart ? kNone : first;
        live.lastUse[v] = value.atEnd ? kNone : last;
      }
    }
  }

  void startMarks() { ++round; }
  void mark(StepId s) { marked[s] = round; }
  bool isMarked(StepId s) const { return marked[s] == round; }

  bool dependsOnMarked(StepId s) const {
    const std::vector<StepId> &list = graph.steps[s].predecessors;
    return std::any_of(list.begin(), list.end(), [&](StepId p) { return isMarked(p); });
  }

  bool markedDependsOn(StepId s, uint32_t low, uint32_t high) const {
    const std::vector<StepId> &list = graph.steps[s].successors;
    return std::any_of(list.begin(), list.end(), [&](StepId n) {
      return isMarked(n) && live.position[n] >= low && live.position[n] <= high;
    });
  }

  const Graph &graph;
  uint64_t limit;
  OrderChoice &choice;
  BoundSearch &bound;
  Liveness live;
  std::vector<uint64_t> before, after; ///< highest use before a position, from a position on
  std::vector<uint64_t> liveBefore;    ///< bytes alive between the position before and this one
  std::vector<uint64_t> windowUsage;
  std::vector<StepId> window, old;
  std::vector<uint32_t> marked;
  uint32_t round = 0;
  unsigned shift = 0;
  uint64_t accepted = 0, lastCutAccepted = UINT64_MAX;
  StepId lastCutStep = kNone;
  Random random{1};
};

} // namespace

OrderChoice chooseOrder(const Graph &graph, const PlanOptions &options) {
  OrderChoice choice;
  Order source = sourceOrder(graph);
  choice.plainSourcePeak = peakOf(graph, source);
  choice.order = choice.released = source;
  choice.peak = choice.sourcePeak = choice.plainSourcePeak;
  choice.source = "source";
  auto consider = [&](Order order, const char *name) {
    uint64_t peak = peakOf(graph, order);
    if (peak < choice.peak) {
      choice.peak = peak;
      choice.order = std::move(order);
      choice.source = name;
    }
  };
  Order released = releaseEarly(graph, source);
  choice.sourcePeak = std::min(choice.sourcePeak, peakOf(graph, released));
  if (choice.sourcePeak < choice.plainSourcePeak)
    choice.released = released;
  if (graph.steps.empty()) {
    choice.bound = choice.peak;
    return choice;
  }
  if (options.reorder || options.release)
    consider(released, "source+release");
  if (options.reorder) {
    struct Rule {
      const char *name, *released;
      Order (*build)(const Graph &);
    };
    consider(runFreeingStepsEarly(graph, source, choice.peak), "source+freeing");
    for (const Rule &rule : {Rule{"reverse-depth-first", "reverse-depth-first+release", reverseDepthFirst},
                             Rule{"least-peak", "least-peak+release", leastPeakFirst},
                             Rule{"least-net", "least-net+release", leastNetFirst}}) {
      Order order = rule.build(graph);
      consider(order, rule.name);
      consider(releaseEarly(graph, order), rule.released);
    }
  }
  BoundSearch bound(graph, options, choice);
  if (options.reorder) {
    uint64_t candidatePeak = choice.peak;
    LocalSearch(graph, options, choice, bound).run();
    if (choice.peak < candidatePeak)
      choice.source += "+search";
  }
  bound.finish();
  if (options.reorder && choice.peak > choice.bound) {
    uint64_t searchedPeak = choice.peak;
    bool isProved = searchAllOrders(graph, choice.order, choice.peak, choice.bound, options.exactOrderWork,
                                    choice.searchWork);
    if (isProved) {
      choice.bound = choice.peak;
      choice.boundComplete = true;
    }
    if (choice.peak < searchedPeak)
      choice.source += "+exact";
  }
  return choice;
}

} // namespace ortc::planning
