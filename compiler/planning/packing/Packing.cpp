// Cuts a packing problem into components and packs each with one method after the other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/packing/Packing.h"

#include "compiler/planning/packing/Component.h"

#include <algorithm>
#include <map>

namespace ortc::planning {

namespace {

/// Range maximum over a fixed array in O(1) after O(n log n).
class RangeMaximum {
public:
  explicit RangeMaximum(std::vector<uint64_t> values) : table{std::move(values)} {
    for (size_t width = 1; 2 * width <= table[0].size(); width *= 2) {
      const std::vector<uint64_t> &half = table.back();
      std::vector<uint64_t> next(table[0].size() - 2 * width + 1);
      for (size_t i = 0; i < next.size(); ++i)
        next[i] = std::max(half[i], half[i + width]);
      table.push_back(std::move(next));
    }
  }

  uint64_t over(uint32_t begin, uint32_t end) const {
    size_t level = 0;
    while ((size_t(2) << level) <= end - begin)
      ++level;
    return std::max(table[level][begin], table[level][end - (size_t(1) << level)]);
  }

private:
  std::vector<std::vector<uint64_t>> table;
};

/// Renumbers the times of a component's pieces without gaps and computes its loads.
void finish(Component &component) {
  std::vector<uint32_t> times;
  for (const Item &item : component.items)
    for (const Piece &piece : item.pieces) {
      times.push_back(piece.begin);
      times.push_back(piece.end);
    }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  component.sections = uint32_t(times.size()) - 1;
  auto section = [&](uint32_t time) {
    return uint32_t(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  std::vector<uint64_t> change(component.sections + 1, 0); // wraps around below zero and back
  for (Item &item : component.items) {
    uint64_t extent = 0;
    const Piece *before = nullptr;
    for (Piece &piece : item.pieces) {
      piece.begin = section(piece.begin);
      piece.end = section(piece.end);
      change[piece.begin] += piece.size;
      change[piece.end] -= piece.size;
      extent = std::max(extent, piece.low + piece.size);
      component.hasGaps |=
          piece.low > 0 || (before && (before->end < piece.begin || before->size < piece.size));
      before = &piece;
    }
    component.extents.push_back(extent);
    component.singlePiece &= item.pieces.size() == 1 && item.pieces[0].low == 0;
    component.hasHints |= item.hint != kAnywhere;
    if (item.fixed != kAnywhere) {
      component.hasFixed = true;
      component.fixedTop = std::max(component.fixedTop, item.fixed + extent);
    }
  }
  component.load.resize(component.sections);
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < component.sections; ++s) {
    component.load[s] = bytes += change[s];
    component.maxLive = std::max(component.maxLive, bytes);
  }
  RangeMaximum highest(component.load);
  for (uint32_t i = 0; i < component.items.size(); ++i)
    component.topLoad.push_back(highest.over(component.begin(i), component.end(i)));
}

/// Splits at the times that no item crosses.
std::vector<Component> split(const PackingProblem &problem) {
  std::vector<uint32_t> order(problem.items.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto begin = [&](uint32_t i) { return problem.items[i].pieces.front().begin; };
  std::sort(order.begin(), order.end(),
            [&](uint32_t x, uint32_t y) { return begin(x) != begin(y) ? begin(x) < begin(y) : x < y; });
  std::vector<Component> components;
  uint32_t reach = 0;
  for (uint32_t i : order) {
    if (components.empty() || begin(i) >= reach)
      components.emplace_back();
    reach = std::max(reach, problem.items[i].pieces.back().end);
    components.back().items.push_back(problem.items[i]);
    components.back().original.push_back(i);
  }
  for (Component &component : components)
    finish(component);
  return components;
}

/// Everything after the first placements, cheapest first. Small components are solved exactly before anything
/// is tried at random; a gap below 0.1 % is worth an eighth of the work.
void improve(const Component &component, uint64_t target, uint64_t next, uint64_t workLimit,
             uint64_t &exactLeft, Placement &best, uint64_t &work, uint64_t &exactDone) {
  auto exactly = [&](uint64_t limit) {
    uint64_t spent = 0;
    packExactly(component, target, limit, best, spent);
    exactLeft -= std::min(exactLeft, spent);
    exactDone += spent;
  };
  if (component.items.size() <= 64)
    exactly(std::min<uint64_t>(exactLeft, 4'000'000));
  if (best.height > next && work < workLimit) {
    // Also where the exact search has more to spend than this: on the cases that are left to it, it is better.
    bool close = best.height - target < target / 1000;
    bool isExact = component.singlePiece && component.items.size() <= kExactItems && exactLeft > workLimit;
    packByPerturbation(component, next, work + (workLimit - work) / (close || isExact ? 8 : 1), best, work);
  }
  if (best.height > next && exactLeft > 0)
    exactly(exactLeft);
}

} // namespace

std::vector<Pool> splitPools(const PackingProblem &problem, const std::vector<uint32_t> &poolOf) {
  std::map<uint32_t, Pool> pools;
  for (uint32_t i = 0; i < problem.items.size(); ++i) {
    Pool &pool = pools[poolOf[i]];
    pool.number = poolOf[i];
    pool.items.push_back(i);
    pool.problem.items.push_back(problem.items[i]);
    pool.problem.sections = problem.sections;
  }
  std::vector<Pool> result;
  for (auto &[number, pool] : pools)
    result.push_back(std::move(pool));
  return result;
}

Packing pack(const PackingProblem &problem, const PackingOptions &options) {
  Packing packing;
  packing.offsets.assign(problem.items.size(), 0);
  std::vector<Component> components = split(problem);
  for (const Component &component : components) {
    packing.maxLive = std::max(packing.maxLive, component.maxLive);
    packing.bound = std::max(packing.bound, component.bound());
  }
  uint64_t target = std::max(packing.bound, options.target);
  std::vector<Placement> placements(components.size());
  for (size_t c = 0; c < components.size(); ++c) {
    if (components[c].hasHints && components[c].items.size() <= kFirstFitItems)
      packByHints(components[c], target, placements[c], packing.work);
    if (placements[c].height > target)
      packByKeys(components[c], target, options.work, placements[c], packing.work);
    if (placements[c].height > target && components[c].items.size() <= kFirstFitItems &&
        packing.work < options.work)
      packByFirstFit(components[c], target, placements[c], packing.work);
  }
  // The highest component alone decides; work on it until it is as low as the next one.
  uint64_t exactLeft = options.exactWork, exactDone = 0;
  for (size_t round = 0; round < 64 * components.size();
       ++round) { // two hard ones overtake each other in turn
    size_t worst = 0;
    uint64_t next = target;
    for (size_t c = 0; c < components.size(); ++c)
      if (placements[c].height > placements[worst].height)
        worst = c;
    for (size_t c = 0; c < components.size(); ++c)
      if (c != worst)
        next = std::max(next, placements[c].height);
    if (components.empty() || placements[worst].height <= target)
      break;
    improve(components[worst], target, next, options.work, exactLeft, placements[worst], packing.work,
            exactDone);
    if (placements[worst].height > next)
      break;
  }
  packing.work += exactDone;
  for (size_t c = 0; c < components.size(); ++c) {
    for (uint32_t i = 0; i < components[c].items.size(); ++i)
      packing.offsets[components[c].original[i]] = placements[c].offsets[i];
    if (placements[c].height > packing.height || packing.source.empty()) {
      packing.height = placements[c].height;
      packing.source = placements[c].source;
    }
  }
  return packing;
}

} // namespace ortc::planning
