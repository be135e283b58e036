// Lower bounds of the time and the bytes that any schedule with repeated steps needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/RecomputeBound.h"

#include "compiler/planning/FrontierCut.h"

#include <algorithm>
#include <numeric>

namespace ortc::planning {

namespace {

/// Greatest value over all prices of: least (time + price * bytes) - price * room.
class Dual {
public:
  Dual(FrontierCut &cut, uint64_t room, uint64_t &work) : cut(cut), room(room), work(work) {}

  /// UINT64_MAX: no choice has room.
  uint64_t solve() {
    FrontierCut::Choice low = at(0);
    if (low.keptBytes <= room)
      return 0;
    FrontierCut::Choice high = cut.choose(FrontierCut::kTimeIsFree, {}, work);
    if (high.cost > room)
      return UINT64_MAX;
    // Two choices, one too large and one that fits: try the price at which they cost the same, until nothing is cheaper.
    for (int round = 0; round < 64 && low.keptBytes > high.keptBytes && high.time > low.time; ++round) {
      unsigned __int128 difference = (unsigned __int128)(high.time - low.time) << FrontierCut::kPriceShift;
      FrontierCut::Price price = uint64_t(difference / (low.keptBytes - high.keptBytes));
      price = std::min(price, FrontierCut::kMostPrice);
      FrontierCut::Choice middle = at(price);
      FrontierCut::Choice &side = middle.keptBytes > room ? low : high;
      if (middle.keptBytes == side.keptBytes && middle.time == side.time)
        break;
      if (middle.keptBytes == low.keptBytes || middle.keptBytes == high.keptBytes)
        break;
      side = middle;
    }
    return best;
  }

private:
  FrontierCut::Choice at(FrontierCut::Price price) {
    FrontierCut::Choice choice = cut.choose(price, {}, work);
    unsigned __int128 paid = ((unsigned __int128)room * price >> FrontierCut::kPriceShift) + 1;
    if (paid < choice.cost)
      best = std::max(best, choice.cost - uint64_t(paid));
    return choice;
  }

  FrontierCut &cut;
  uint64_t room;
  uint64_t &work;
  uint64_t best = 0;
};

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
  for (StepId s : steps) {
    if (spent > workLimit)
      break;
    cut.setStep(s);
    spent += graph.steps.size() + graph.maker.size();
    uint64_t fixed = cut.fixedBytes();
    bound.bytes = std::max(bound.bytes, fixed);
    if (usage[s] > bound.bytes)
      bound.bytes = std::max(bound.bytes, fixed + cut.choose(FrontierCut::kTimeIsFree, {}, spent).cost);
    if (usage[s] <= budget || fixed > budget)
      continue;
    uint64_t time = Dual(cut, budget - fixed, spent).solve();
    if (time != UINT64_MAX && time > bound.extraTime) {
      bound.extraTime = time;
      bound.step = s;
    }
  }
  work += spent;
  return bound;
}

} // namespace ortc::planning
