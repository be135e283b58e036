// Lower bounds of the time and the bytes that any schedule with repeated steps needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/recompute/RecomputeBound.h"

#include "compiler/planning/order/FrontierCut.h"

#include <algorithm>
#include <numeric>

namespace ortc::planning {

namespace {

/// The least time of repeated steps at one moment, by branch and bound: nodes are sets of decisions about
/// single values, their bounds are Lagrangian duals, and what is decided next is the largest value about
/// which the two choices at the best price disagree.
class LeastTime {
public:
  static constexpr uint64_t kImpossible = UINT64_MAX;

  LeastTime(const RecomputeGraph &graph, FrontierCut &cut, uint64_t room, uint64_t &work)
      : graph(graph), cut(cut), room(room), work(work) {}

  /// The bound without any decision.
  uint64_t relaxed() { return solve({}).bound; }

  /// A bound at least as good: the least time itself, unless `nodes` are not enough.
  uint64_t branch(uint32_t nodes, uint64_t workLimit) {
    std::vector<Node> open{solve({})};
    auto later = [](const Node &one, const Node &other) { return one.bound > other.bound; };
    while (nodes-- > 0 && work < workLimit) {
      if (open.empty() || open.front().bound >= upper)
        return upper;
      if (open.front().next == kNone)
        break;
      std::pop_heap(open.begin(), open.end(), later);
      Node node = std::move(open.back());
      open.pop_back();
      for (bool isKept : {true, false}) {
        Decisions decisions = node.decisions;
        decisions.push_back({node.next, isKept});
        open.push_back(solve(std::move(decisions)));
        open.back().bound = std::max(open.back().bound, node.bound);
        std::push_heap(open.begin(), open.end(), later);
      }
    }
    return std::min(upper, open.front().bound);
  }

private:
  using Decisions = std::vector<std::pair<ValueId, bool>>;
  struct Node {
    Decisions decisions;
    uint64_t bound = 0;
    ValueId next = kNone; ///< to decide about; kNone: the bound is exact
  };
  struct Point {
    FrontierCut::Choice choice;
    std::vector<uint8_t> kept; ///< per value of the cut
  };

  Point at(FrontierCut::Price price) {
    Point point{cut.choose(price, {}, work), {}};
    for (ValueId v : cut.values())
      point.kept.push_back(cut.isKept(v));
    return point;
  }

  /// The greatest value over all prices of: least (time + price * bytes) - price * room.
  Node solve(Decisions decisions) {
    Node node;
    uint64_t left = room;
    bool fits = true;
    for (auto [value, isKept] : decisions) {
      uint64_t bytes = isKept ? graph.graph.values[value].bytes : 0;
      fits &= bytes <= left;
      left -= std::min(left, bytes);
      cut.decide(value, isKept ? FrontierCut::Decision::kKept : FrontierCut::Decision::kDropped);
    }
    node.bound = kImpossible;
    if (fits)
      search(left, node);
    for (auto [value, isKept] : decisions)
      cut.decide(value, FrontierCut::Decision::kOpen);
    node.decisions = std::move(decisions);
    return node;
  }

  void search(uint64_t left, Node &node) {
    Point low = at(0), high = at(FrontierCut::kTimeIsFree);
    if (high.choice.cost > left)
      return;
    node.bound = low.choice.cost; // what decisions cost when bytes are free
    if (low.choice.keptBytes <= left) {
      upper = std::min(upper, low.choice.time);
      return;
    }
    // Two choices, one too large and one that fits: try the price at which they cost the same, until nothing
    // is cheaper.
    for (int round = 0; round < 64 && high.choice.time > low.choice.time; ++round) {
      unsigned __int128 difference = (unsigned __int128)(high.choice.time - low.choice.time)
                                     << FrontierCut::kPriceShift;
      auto price = uint64_t(difference / (low.choice.keptBytes - high.choice.keptBytes));
      price = std::min(price, FrontierCut::kMostPrice);
      Point middle = at(price);
      unsigned __int128 paid = ((unsigned __int128)left * price >> FrontierCut::kPriceShift) + 1;
      if (paid < middle.choice.cost)
        node.bound = std::max(node.bound, middle.choice.cost - uint64_t(paid));
      uint64_t bytes = middle.choice.keptBytes;
      if (bytes <= left && middle.choice.time < high.choice.time) {
        bool isSame = bytes == high.choice.keptBytes;
        high = std::move(middle);
        if (isSame)
          break;
      } else if (bytes > left && bytes < low.choice.keptBytes) {
        low = std::move(middle);
      } else {
        break;
      }
    }
    upper = std::min(upper, high.choice.time);
    uint64_t largest = 0;
    for (size_t i = 0; i < low.kept.size(); ++i) {
      ValueId v = cut.values()[i];
      if (low.kept[i] != high.kept[i] && graph.graph.values[v].bytes > largest) {
        largest = graph.graph.values[v].bytes;
        node.next = v;
      }
    }
  }

  const RecomputeGraph &graph;
  FrontierCut &cut;
  uint64_t room;
  uint64_t &work;
  uint64_t upper = kImpossible; ///< of a choice that fits
};

/// Moments whose bounds are made as tight as can be, and how hard.
constexpr size_t kBranchedSteps = 6;
constexpr uint32_t kBranchNodes = 400;

} // namespace

RecomputeBound boundRecompute(const RecomputeGraph &graph, const std::vector<uint64_t> &usage,
                              uint64_t budget, uint64_t &work, uint64_t workLimit) {
  RecomputeBound bound;
  std::vector<StepId> steps(graph.steps.size());
  std::iota(steps.begin(), steps.end(), 0u);
  std::sort(steps.begin(), steps.end(),
            [&](StepId x, StepId y) { return usage[x] != usage[y] ? usage[x] > usage[y] : x < y; });
  FrontierCut cut(graph);
  uint64_t spent = 0;
  std::vector<std::pair<uint64_t, StepId>> best; // by falling bound
  for (StepId s : steps) {
    if (spent > workLimit / 2)
      break;
    cut.setStep(s);
    spent += graph.steps.size() + graph.maker.size();
    uint64_t fixed = cut.fixedBytes();
    bound.bytes = std::max(bound.bytes, fixed);
    if (usage[s] > bound.bytes)
      bound.bytes = std::max(bound.bytes, fixed + cut.choose(FrontierCut::kTimeIsFree, {}, spent).cost);
    if (usage[s] <= budget || fixed > budget)
      continue;
    uint64_t time = LeastTime(graph, cut, budget - fixed, spent).relaxed();
    if (time > 0 && time != LeastTime::kImpossible)
      best.push_back({time, s});
  }
  std::sort(best.begin(), best.end(), [](const auto &x, const auto &y) { return x > y; });
  if (best.size() > kBranchedSteps)
    best.resize(kBranchedSteps);
  for (auto [time, s] : best) {
    bound.extraTime = std::max(bound.extraTime, time);
    cut.setStep(s);
    uint64_t exact = LeastTime(graph, cut, budget - cut.fixedBytes(), spent).branch(kBranchNodes, workLimit);
    if (exact != LeastTime::kImpossible)
      bound.extraTime = std::max(bound.extraTime, exact);
  }
  work += spent;
  return bound;
}

} // namespace ortc::planning
