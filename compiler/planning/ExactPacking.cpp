// Exact packing of small components: depth-first search over canonical placements.
//
// Every packing can be pushed down until each item rests on another or on the ground, and can then be built
// by placing items in the order of their offsets; only such sequences are searched (the canonical form of
// M. D. Moffitt, "MiniMalloc", ASPLOS 2023). At a node:
// - an item can start no lower than the floor over its sections, nor below the last item placed;
// - items that start at or above the lowest possible end of any other are left for later (that other one
//   would have to go below them);
// - a section is too full when the lowest start of any item left in it plus all their sizes pass the
//   capacity: this ends most branches;
// - when no item left crosses a section border, the two sides are solved alone.
// Three orders of preference take turns with doubling limits, for none is good everywhere.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/Component.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ortc::planning {

namespace {

constexpr size_t kMaxItems = 2000; ///< the search recurses once per item

enum class Answer { kFound, kImpossible, kLimit };

class CanonicalSearch {
public:
  CanonicalSearch(const Component &component, std::vector<uint32_t> preference, uint64_t capacity, uint64_t limit)
      : component(component), preference(std::move(preference)), capacity(capacity), limit(limit),
        floor(component.sections, 0), lowest(component.sections), left(component.load),
        start(component.items.size(), 0), offsets(component.items.size(), 0) {}

  Answer run() {
    std::vector<uint32_t> items(component.items.size());
    std::iota(items.begin(), items.end(), 0u);
    std::sort(items.begin(), items.end(), [&](uint32_t x, uint32_t y) {
      return component.begin(x) != component.begin(y) ? component.begin(x) < component.begin(y) : x < y;
    });
    bool found = solve(items, 0, 0);
    return found ? Answer::kFound : work > limit ? Answer::kLimit : Answer::kImpossible;
  }

  uint64_t work = 0;
  const std::vector<uint64_t> &result() const { return offsets; }

private:
  /// Places `items` (sorted by begin), none below `last`; those at `last` only with preference >= `turn`.
  bool solve(const std::vector<uint32_t> &items, uint64_t last, uint32_t turn) {
    // Split where no item crosses.
    size_t from = 0;
    uint32_t reach = component.end(items[0]);
    for (size_t i = 1; i < items.size(); ++i) {
      if (component.begin(items[i]) >= reach) {
        if (!branch({items.begin() + long(from), items.begin() + long(i)}, last, turn))
          return false;
        from = i;
      }
      reach = std::max(reach, component.end(items[i]));
    }
    if (from == 0)
      return branch(items, last, turn);
    return branch({items.begin() + long(from), items.end()}, last, turn);
  }

  bool branch(const std::vector<uint32_t> &items, uint64_t last, uint32_t turn) {
    if (items.size() == 1) {
      uint32_t i = items[0];
      offsets[i] = startOf(i, last);
      ++work;
      return offsets[i] + component.size(i) <= capacity;
    }
    uint32_t begin = component.begin(items[0]), end = 0;
    uint64_t lowestEnd = UINT64_MAX;
    for (uint32_t i : items) {
      start[i] = startOf(i, last);
      if (start[i] + component.size(i) > capacity)
        return false;
      lowestEnd = std::min(lowestEnd, start[i] + component.size(i));
      end = std::max(end, component.end(i));
    }
    std::fill(lowest.begin() + begin, lowest.begin() + end, UINT64_MAX);
    for (uint32_t i : items) {
      uint64_t value = start[i];
      for (uint32_t s = component.begin(i); s < component.end(i); ++s)
        lowest[s] = std::min(lowest[s], value);
      work += component.width(i) / 4 + 1;
    }
    for (uint32_t s = begin; s < end; ++s)
      if (lowest[s] != UINT64_MAX && lowest[s] + left[s] > capacity)
        return false;

    std::vector<std::pair<uint64_t, uint32_t>> candidates; // start, preference
    for (uint32_t i : items)
      if (start[i] < lowestEnd && !(start[i] == last && preference[i] < turn))
        candidates.push_back({start[i], preference[i]});
    std::sort(candidates.begin(), candidates.end());
    work += (end - begin) / 2 + candidates.size() * 2;

    std::vector<uint32_t> rest(items.size() - 1);
    std::vector<uint64_t> saved;
    for (auto [offset, rank] : candidates) {
      if (work > limit)
        return false;
      size_t k = 0;
      uint32_t chosen = 0;
      for (uint32_t i : items)
        if (preference[i] != rank)
          rest[k++] = i;
        else
          chosen = i;
      uint32_t first = component.begin(chosen), stop = component.end(chosen);
      uint64_t size = component.size(chosen);
      saved.assign(floor.begin() + first, floor.begin() + stop);
      for (uint32_t s = first; s < stop; ++s) {
        floor[s] = offset + size;
        left[s] -= size;
      }
      work += (stop - first) / 2 + items.size();
      offsets[chosen] = offset;
      if (offset + size <= capacity && solve(rest, offset, rank + 1))
        return true;
      for (uint32_t s = first; s < stop; ++s) {
        floor[s] = saved[s - first];
        left[s] += size;
      }
    }
    return false;
  }

  uint64_t startOf(uint32_t i, uint64_t last) {
    uint64_t result = last;
    for (uint32_t s = component.begin(i); s < component.end(i); ++s)
      result = std::max(result, floor[s]);
    work += component.width(i) / 4 + 1;
    return alignUp(result, component.items[i].alignment);
  }

  const Component &component;
  std::vector<uint32_t> preference; ///< per item: rank, 0 is tried first among equally low starts
  uint64_t capacity, limit;
  std::vector<uint64_t> floor, lowest, left; ///< per section
  std::vector<uint64_t> start, offsets;      ///< per item
};

std::vector<std::vector<uint32_t>> preferences(const Component &c) {
  auto rank = [&](auto key) {
    std::vector<uint32_t> order(c.items.size()), result(c.items.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
      auto left = key(x), right = key(y);
      return left != right ? left > right : x < y;
    });
    for (uint32_t r = 0; r < order.size(); ++r)
      result[order[r]] = r;
    return result;
  };
  unsigned shift = 0;
  while ((c.maxLive >> shift) >= (uint64_t(1) << 31))
    ++shift;
  auto area = [&](uint32_t i) { return uint64_t(c.width(i)) * (c.size(i) >> shift); };
  return {rank([&](uint32_t i) { return std::tuple(uint64_t(c.width(i)), area(i), c.topLoad[i]); }),
          rank([&](uint32_t i) { return std::tuple(c.topLoad[i], area(i), uint64_t(c.width(i))); }),
          rank([&](uint32_t i) { return std::tuple(c.topLoad[i], uint64_t(c.width(i)), area(i)); })};
}

} // namespace

void packExactly(const Component &component, uint64_t target, uint64_t workLimit, Placement &best, uint64_t &work) {
  if (!component.singlePiece || component.items.size() > kMaxItems)
    return;
  std::vector<std::vector<uint32_t>> orders = preferences(component);
  auto attempt = [&](uint64_t capacity, uint64_t limit) {
    uint64_t until = work + limit;
    for (uint64_t share = 1'000'000; work < until; share *= 2)
      for (const std::vector<uint32_t> &order : orders) {
        CanonicalSearch search(component, order, capacity, std::min(share, until - std::min(until, work)));
        Answer answer = search.run();
        work += search.work;
        if (answer == Answer::kFound) {
          best.offsets = search.result();
          best.height = 0;
          for (uint32_t i = 0; i < best.offsets.size(); ++i)
            best.height = std::max(best.height, best.offsets[i] + component.size(i));
          best.source = "exact";
        }
        if (answer != Answer::kLimit)
          return answer;
        if (work >= until)
          break;
      }
    return Answer::kLimit;
  };
  // Half of the work for the target itself, the rest for heights between it and the best known.
  uint64_t low = std::max(target, component.maxLive), spent = work;
  if (attempt(low, workLimit / 2) == Answer::kFound)
    return;
  while (best.height - low > low / 1000 && work - spent < workLimit) {
    uint64_t middle = low + (best.height - low) / 2;
    if (attempt(middle, std::min(workLimit / 8, workLimit - (work - spent))) != Answer::kFound)
      low = middle;
  }
}

} // namespace ortc::planning
