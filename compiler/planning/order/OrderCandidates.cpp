// Legal orders of the steps, each by one rule, from which the search starts.
//
// List scheduling keeps the ready steps sorted by what they would allocate and free; a step's key changes
// only when a value it uses comes to life or is left with one user, so a whole order costs
// O(operands * log steps). Segments are not looked at while scheduling: a stable sort by segment at the
// end keeps an order legal, because no step depends on one of a later segment.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/OrderCandidates.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace ortc::planning {

namespace {

void separateSegments(const Graph &graph, Order &order) {
  std::vector<std::pair<uint32_t, uint32_t>> keys(order.size());
  for (uint32_t p = 0; p < order.size(); ++p)
    keys[p] = {graph.steps[order[p]].segment, p};
  std::sort(keys.begin(), keys.end());
  Order sorted(order.size());
  for (uint32_t p = 0; p < order.size(); ++p)
    sorted[p] = order[keys[p].second];
  order = std::move(sorted);
}

/// What is alive and what is still to be used while an order is built from the front.
class Progress {
public:
  explicit Progress(const Graph &graph)
      : graph(graph), missing(graph.steps.size()), done(graph.steps.size(), false),
        usersLeft(graph.values.size()), usersXor(graph.values.size(), 0), live(graph.values.size(), false) {
    for (StepId s = 0; s < graph.steps.size(); ++s)
      missing[s] = uint32_t(graph.steps[s].predecessors.size());
    for (ValueId v = 0; v < graph.values.size(); ++v) {
      const Value &value = graph.values[v];
      usersLeft[v] = uint32_t(value.users.size());
      for (StepId s : value.users)
        usersXor[v] ^= s;
      if (value.atStart) {
        live[v] = true;
        liveBytes += value.bytes;
      }
    }
  }

  bool ready(StepId s) const { return missing[s] == 0 && !done[s]; }
  uint64_t bytesAlive() const { return liveBytes; }

  uint64_t allocates(StepId s) const {
    uint64_t bytes = 0;
    for (ValueId v : graph.steps[s].values)
      if (!live[v])
        bytes += graph.values[v].bytes;
    return bytes;
  }

  uint64_t frees(StepId s) const {
    uint64_t bytes = 0;
    for (ValueId v : graph.steps[s].values)
      if (usersLeft[v] == 1 && !graph.values[v].atEnd)
        bytes += graph.values[v].bytes;
    return bytes;
  }

  /// Runs `s`. Calls `changed` for every ready step whose allocation or release may be different now, the
  /// newly ready ones included; the same step may be named several times.
  template <typename Changed> void run(StepId s, Changed changed) {
    done[s] = true;
    for (ValueId v : graph.steps[s].values) {
      const Value &value = graph.values[v];
      if (!live[v]) {
        live[v] = true;
        liveBytes += value.bytes;
        if (value.writers > 1)
          for (StepId user : value.users)
            if (ready(user))
              changed(user);
      }
      usersXor[v] ^= s;
      if (--usersLeft[v] == 0 && !value.atEnd)
        liveBytes -= value.bytes;
      if (usersLeft[v] == 1 && ready(usersXor[v]))
        changed(usersXor[v]);
    }
    for (StepId next : graph.steps[s].successors)
      if (--missing[next] == 0)
        changed(next);
  }

private:
  const Graph &graph;
  std::vector<uint32_t> missing; ///< predecessors that have not run
  std::vector<bool> done;
  std::vector<uint32_t> usersLeft;
  std::vector<StepId> usersXor; ///< of the users left: names the last one
  std::vector<bool> live;
  uint64_t liveBytes = 0;
};

/// Goes through `base`, and after every step through the ready steps for which `early` holds.
template <typename Early>
Order hoist(const Graph &graph, const Order &base, Progress &progress, Early early) {
  std::vector<uint32_t> place(base.size());
  for (uint32_t p = 0; p < base.size(); ++p)
    place[base[p]] = p;
  Order order;
  order.reserve(base.size());
  std::set<uint32_t> candidates; // places in `base`, so that ties keep its order
  auto changed = [&](StepId s) { candidates.insert(place[s]); };
  auto drain = [&] {
    while (!candidates.empty()) {
      StepId s = base[*candidates.begin()];
      candidates.erase(candidates.begin());
      if (progress.ready(s) && early(s)) {
        order.push_back(s);
        progress.run(s, changed);
      }
    }
  };
  for (StepId s = 0; s < graph.steps.size(); ++s)
    if (progress.ready(s))
      changed(s);
  drain();
  for (StepId s : base)
    if (progress.ready(s)) {
      order.push_back(s);
      progress.run(s, changed);
      drain();
    }
  separateSegments(graph, order);
  return order;
}

/// List scheduling over ready steps sorted by (net allocation, allocation, place in the source).
class ListScheduler {
public:
  explicit ListScheduler(const Graph &graph)
      : graph(graph), progress(graph), keys(graph.steps.size()), queued(graph.steps.size(), false) {}

  Order run(bool peakFirst) {
    Order order;
    order.reserve(graph.steps.size());
    auto changed = [&](StepId s) { update(s); };
    for (StepId s = 0; s < graph.steps.size(); ++s)
      if (progress.ready(s))
        update(s);
    uint64_t peak = progress.bytesAlive();
    while (!byNet.empty()) {
      StepId s = std::get<2>(*byNet.begin());
      if (peakFirst)
        s = choose(peak - std::min(peak, progress.bytesAlive()));
      remove(s);
      peak = std::max(peak, progress.bytesAlive() + std::get<1>(keys[s]));
      order.push_back(s);
      progress.run(s, changed);
    }
    separateSegments(graph, order);
    return order;
  }

private:
  using Key = std::tuple<int64_t, uint64_t, StepId>;

  /// Among the steps that leave the peak alone the one with the least net allocation, of which only the
  /// first 64 are looked at; else the one that allocates least.
  StepId choose(uint64_t slack) const {
    int looked = 0;
    for (const Key &key : byNet) {
      if (std::get<1>(key) <= slack)
        return std::get<2>(key);
      if (++looked == 64)
        break;
    }
    return std::get<2>(*byAllocation.begin());
  }

  void remove(StepId s) {
    byNet.erase(keys[s]);
    byAllocation.erase({std::get<1>(keys[s]), std::get<0>(keys[s]), s});
    queued[s] = false;
  }

  void update(StepId s) {
    if (queued[s])
      remove(s);
    uint64_t allocates = progress.allocates(s);
    int64_t net = int64_t(allocates) - int64_t(progress.frees(s));
    keys[s] = {net, allocates + graph.steps[s].workspace(), s};
    byNet.insert(keys[s]);
    byAllocation.insert({std::get<1>(keys[s]), net, s});
    queued[s] = true;
  }

  const Graph &graph;
  Progress progress;
  std::vector<Key> keys;
  std::vector<bool> queued;
  std::set<Key> byNet;
  std::set<std::tuple<uint64_t, int64_t, StepId>> byAllocation;
};

} // namespace

Order sourceOrder(const Graph &graph) {
  Order order(graph.steps.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

Order releaseEarly(const Graph &graph, const Order &base) {
  Progress progress(graph);
  return hoist(graph, base, progress, [&](StepId s) {
    for (ValueId v : graph.steps[s].values) {
      const Value &value = graph.values[v];
      // A value whose only user is the step that writes it is scratch and does not outlive the step.
      bool written = !value.atStart && value.users.front() == s;
      if (written && (value.atEnd || value.users.size() > 1))
        return false;
    }
    return true;
  });
}

Order runFreeingStepsEarly(const Graph &graph, const Order &base, uint64_t peak) {
  Progress progress(graph);
  return hoist(graph, base, progress, [&](StepId s) {
    uint64_t allocates = progress.allocates(s);
    return allocates <= progress.frees(s) &&
           progress.bytesAlive() + allocates + graph.steps[s].workspace() <= peak;
  });
}

Order reverseDepthFirst(const Graph &graph) {
  std::vector<uint32_t> missing(graph.steps.size());
  std::vector<StepId> stack;
  for (StepId s = 0; s < graph.steps.size(); ++s) {
    missing[s] = uint32_t(graph.steps[s].successors.size());
    if (missing[s] == 0)
      stack.push_back(s);
  }
  Order order;
  order.reserve(graph.steps.size());
  while (!stack.empty()) {
    StepId s = stack.back();
    stack.pop_back();
    order.push_back(s);
    for (StepId before : graph.steps[s].predecessors)
      if (--missing[before] == 0)
        stack.push_back(before);
  }
  std::reverse(order.begin(), order.end());
  separateSegments(graph, order);
  return order;
}

Order leastPeakFirst(const Graph &graph) { return ListScheduler(graph).run(true); }

Order leastNetFirst(const Graph &graph) { return ListScheduler(graph).run(false); }

} // namespace ortc::planning
