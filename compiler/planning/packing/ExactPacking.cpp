// Exact packing of small components: depth-first search over canonical placements.
//
// Every packing can be pushed down until each item rests on another or on the ground, and can then be built
// by placing items in the order of their offsets; only such sequences are searched (the canonical form of
// M. D. Moffitt, "MiniMalloc", ASPLOS 2023). At a node:
// - an item can start no lower than the floor over its sections, nor below the last item placed;
// - items that start at or above the lowest possible end of any other are left for later (that other one
//   would have to go below them);
// - equal items go in one order;
// - a section is too full when the lowest start of any item left in it plus all their sizes pass the
//   capacity: this ends most branches;
// - when no item left crosses a section border, the two sides are solved alone.
// A fixed item takes its turn when the others have reached its offset; one that can no longer lie there ends the
// branch.
//
// A branch that fails says why: some of the items left, each with a start below which it need not be looked for,
// cannot all be packed. Where that is true without the item placed last, the node above fails with it; where it is
// not, only items of the conflict are tried in its place. All that a branch rules out must therefore hold whatever
// other items there are: the order of placement is kept as a bound on starts, and of two packings that differ by a
// swap of items of one lifetime both are searched, for the bounds may allow only one.
// Sections whose items all exist in a neighbouring one as well say nothing and are dropped beforehand.
// Three orders of preference take turns and are restarted with noise, for none is good everywhere; restarts prefer
// items that were often in sections that were too full.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/packing/Component.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ortc::planning {

namespace {

enum class Answer { kFound, kImpossible, kLimit };

/// An item of the search: its sections among those that matter, and its rank of preference.
struct Rectangle {
  uint32_t begin, end;
  uint64_t size, alignment, fixed;
  uint32_t preference; ///< 0 is tried first among equally low starts
  uint32_t item;
};

/// Drops the sections that no item begins in or that no item ends after: their items are a subset of those of
/// a neighbour.
std::vector<Rectangle> reduceSections(const Component &component, uint32_t &sections) {
  std::vector<bool> begins(component.sections, false), ends(component.sections, false);
  for (uint32_t i = 0; i < component.items.size(); ++i) {
    begins[component.begin(i)] = true;
    ends[component.end(i) - 1] = true;
  }
  // A section is kept when something begins at or since the last kept one, and something ends after it before
  // anything else begins.
  std::vector<uint32_t> keptBefore(component.sections + 1, 0);
  bool begun = false;
  sections = 0;
  for (uint32_t s = 0; s < component.sections; ++s) {
    keptBefore[s] = sections;
    begun |= begins[s];
    if (begun && ends[s]) {
      ++sections;
      begun = false;
    }
  }
  keptBefore[component.sections] = sections;
  std::vector<Rectangle> rectangles;
  for (uint32_t i = 0; i < component.items.size(); ++i)
    rectangles.push_back({keptBefore[component.begin(i)], keptBefore[component.end(i)], component.size(i),
                          component.items[i].alignment, component.items[i].fixed, 0, i});
  return rectangles;
}

/// Divides all sizes and places by their greatest common divisor, which is returned: one byte more is then as much as
/// a place can be off.
uint64_t scaleSizes(std::vector<Rectangle> &rectangles) {
  uint64_t unit = 0;
  for (const Rectangle &r : rectangles) {
    unit = std::gcd(unit, r.size);
    if (r.fixed != kAnywhere)
      unit = std::gcd(unit, r.fixed);
  }
  for (const Rectangle &r : rectangles)
    if (unit % r.alignment != 0)
      unit = std::gcd(unit, r.alignment);
  for (Rectangle &r : rectangles) {
    r.size /= unit;
    r.alignment = unit % r.alignment == 0 ? 1 : r.alignment / unit;
    if (r.fixed != kAnywhere)
      r.fixed /= unit;
  }
  return unit;
}

class CanonicalSearch {
public:
  /// `rectangles` are sorted by begin, end, preference. `failures`, per item: how often it was in a section that was
  /// too full.
  CanonicalSearch(const std::vector<Rectangle> &rectangles, uint32_t sections, uint64_t capacity,
                  uint64_t limit, std::vector<uint64_t> &failures)
      : all(rectangles), capacity(capacity), limit(limit), failures(failures), lowest(sections),
        left(sections, 0), offsets(rectangles.size(), 0), conflicts(rectangles.size() + 1) {
    for (const Rectangle &r : all)
      for (uint32_t s = r.begin; s < r.end; ++s)
        left[s] += r.size;
  }

  Answer run() {
    std::vector<Waiting> items(all.size());
    for (uint32_t i = 0; i < all.size(); ++i)
      items[i] = {i, all[i].fixed == kAnywhere ? 0 : all[i].fixed};
    bool found = solve(items.data(), items.data() + items.size(), kNothing, 0);
    return found ? Answer::kFound : work > limit ? Answer::kLimit : Answer::kImpossible;
  }

  uint64_t work = 0;
  const std::vector<uint64_t> &result() const { return offsets; } ///< per rectangle

private:
  static constexpr uint32_t kNothing = UINT32_MAX;

  /// A rectangle not yet placed and the lowest start that is left to it.
  struct Waiting {
    uint32_t index;
    uint64_t floor;
  };

  /// Why a branch failed. Per rectangle: 0 when it has no part in it, or 1 + a start: the rectangles of the conflict
  /// cannot all be packed when none starts below its own, whatever else there is.
  using Conflict = std::vector<uint64_t>;

  struct Candidate {
    uint64_t offset;
    uint32_t preference, index;
    bool isDone;
  };

  /// Places the items (in the order of begin) after `before`. Splits them where none crosses.
  bool solve(Waiting *first, Waiting *stop, uint32_t before, uint32_t depth) {
    Waiting *from = first;
    uint32_t reach = all[first->index].end;
    for (Waiting *at = first + 1; at < stop; ++at) {
      if (all[at->index].begin >= reach) {
        if (!branch(from, at, before, depth))
          return false;
        from = at;
      }
      reach = std::max(reach, all[at->index].end);
    }
    return branch(from, stop, before, depth);
  }

  bool branch(Waiting *first, Waiting *stop, uint32_t before, uint32_t depth) {
    size_t count = size_t(stop - first);
    uint32_t begin = all[first->index].begin, end = 0;
    uint64_t last = before == kNothing ? 0 : offsets[before];
    uint32_t turn = before == kNothing ? 0 : all[before].preference;
    Conflict &conflict = conflicts[depth];
    conflict.assign(all.size(), 0);
    work += count + all.size() / 8;
    const Waiting *lowestEnding = first;
    for (Waiting *at = first; at < stop; ++at) {
      const Rectangle &r = all[at->index];
      at->floor = alignUp(std::max(at->floor, last + (r.preference < turn)), r.alignment);
      uint64_t most = r.fixed != kAnywhere ? std::min(r.fixed, capacity - r.size) : capacity - r.size;
      if (at->floor > most) {
        conflict[at->index] = most + 2;
        return false;
      }
      if (at->floor + r.size < lowestEnding->floor + all[lowestEnding->index].size)
        lowestEnding = at;
      end = std::max(end, r.end);
    }
    if (count == 1) {
      offsets[first->index] = first->floor;
      return true;
    }
    if (!sectionsHold(first, stop, begin, end, conflict))
      return false;

    uint64_t lowestEnd = lowestEnding->floor + all[lowestEnding->index].size;
    std::vector<Candidate> candidates;
    for (Waiting *at = first; at < stop; ++at)
      if (at->floor < lowestEnd)
        candidates.push_back({at->floor, all[at->index].preference, at->index, false});
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &x, const Candidate &y) {
      return x.offset != y.offset ? x.offset < y.offset : x.preference < y.preference;
    });
    conflict[lowestEnding->index] = lowestEnding->floor + 1;

    std::vector<Waiting> rest(count - 1);
    // The first candidate is tried whether it takes part in the conflict or not, the others only when they do.
    for (bool isFirst = true;;) {
      Candidate *next = nullptr;
      for (Candidate &c : candidates)
        if (!c.isDone && (isFirst || conflict[c.index] != 0)) {
          next = &c;
          break;
        }
      if (!next)
        return false;
      next->isDone = true;
      uint32_t chosen = next->index;
      uint64_t offset = next->offset;
      if (isSecondTwin(*next, first, stop, conflict))
        continue;
      isFirst = false;
      const Rectangle &r = all[chosen];
      size_t k = 0;
      for (Waiting *at = first; at < stop; ++at) {
        if (at->index == chosen)
          continue;
        bool meets = all[at->index].begin < r.end && r.begin < all[at->index].end;
        rest[k++] = {at->index, meets ? std::max(at->floor, offset + r.size) : at->floor};
      }
      for (uint32_t s = r.begin; s < r.end; ++s)
        left[s] -= r.size;
      work += (r.end - r.begin) / 2 + 2 * count;
      offsets[chosen] = offset;
      bool found = solve(rest.data(), rest.data() + rest.size(), chosen, depth + 1);
      // Also after success: the part beside this one may still fail, and then all of it is tried again.
      for (uint32_t s = r.begin; s < r.end; ++s)
        left[s] += r.size;
      if (found)
        return true;
      if (work > limit)
        return false;
      if (!learn(first, stop, chosen, offset, lowestEnd, conflicts[depth + 1], conflict))
        return false;
    }
  }

  /// Adds the conflict of a child to that of its parent, where `chosen` was placed at `offset`. False when the child
  /// would have failed without it: the parent fails as a whole.
  bool learn(const Waiting *first, const Waiting *stop, uint32_t chosen, uint64_t offset, uint64_t lowestEnd,
             const Conflict &child, Conflict &conflict) {
    work += size_t(stop - first);
    bool takesPart = child[chosen] != 0;
    for (const Waiting *at = first; at < stop && !takesPart; ++at)
      takesPart = child[at->index] > at->floor + 1;
    if (!takesPart) {
      conflict = child;
      return false;
    }
    const Rectangle &r = all[chosen];
    for (const Waiting *at = first; at < stop; ++at) {
      if (child[at->index] == 0)
        continue;
      const Rectangle &other = all[at->index];
      uint64_t start = child[at->index] - 1;
      bool meets = other.begin < r.end && r.begin < other.end;
      if (start <=
          alignUp(meets ? offset + r.size : offset + (other.preference < r.preference), other.alignment))
        start = 0; // it follows from the place of the chosen one
      if (at->floor < lowestEnd)
        start = at->floor;
      else
        start = std::max(start, lowestEnd);
      conflict[at->index] = std::max(conflict[at->index], start + 1);
    }
    for (const Waiting *at = first; at < stop; ++at)
      if (at->index == chosen)
        conflict[chosen] = at->floor + 1;
    return true;
  }

  /// Whether every section can still hold what is left in it, from its lowest start on.
  bool sectionsHold(const Waiting *first, const Waiting *stop, uint32_t begin, uint32_t end,
                    Conflict &conflict) {
    std::fill(lowest.begin() + begin, lowest.begin() + end, UINT64_MAX);
    for (const Waiting *at = first; at < stop; ++at) {
      const Rectangle &r = all[at->index];
      for (uint32_t s = r.begin; s < r.end; ++s)
        lowest[s] = std::min(lowest[s], at->floor);
      work += (r.end - r.begin) / 4;
    }
    work += (end - begin) / 2;
    uint32_t full = kNothing; // of several, the one with most left in it says most
    for (uint32_t s = begin; s < end; ++s)
      if (lowest[s] != UINT64_MAX && lowest[s] + left[s] > capacity &&
          (full == kNothing || left[s] > left[full]))
        full = s;
    if (full == kNothing)
      return true;
    uint64_t start = left[full] > capacity ? 0 : capacity - left[full] + 1;
    for (const Waiting *at = first; at < stop; ++at) {
      const Rectangle &r = all[at->index];
      if (r.begin > full || full >= r.end)
        continue;
      conflict[at->index] = start + 1;
      ++failures[r.item];
    }
    return false;
  }

  /// Whether an equal rectangle with the same start goes first; adds that one to the conflict.
  bool isSecondTwin(const Candidate &candidate, const Waiting *first, const Waiting *stop,
                    Conflict &conflict) const {
    const Rectangle &r = all[candidate.index];
    for (const Waiting *at = first; at < stop; ++at) {
      const Rectangle &other = all[at->index];
      if (other.begin == r.begin && other.end == r.end && other.size == r.size &&
          other.alignment == r.alignment && other.fixed == r.fixed && other.preference < r.preference &&
          at->floor == candidate.offset) {
        conflict[at->index] = at->floor + 1;
        return true;
      }
    }
    return false;
  }

  const std::vector<Rectangle> &all;
  uint64_t capacity, limit;
  std::vector<uint64_t> &failures;
  std::vector<uint64_t> lowest, left; ///< per section
  std::vector<uint64_t> offsets;
  std::vector<Conflict> conflicts; ///< per depth
};

/// Per index, its place in the order of falling keys.
template <typename Rank> std::vector<uint32_t> rankBy(size_t count, Rank key) {
  std::vector<uint32_t> order(count), result(count);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    auto left = key(x), right = key(y);
    return left != right ? left > right : x < y;
  });
  for (uint32_t r = 0; r < order.size(); ++r)
    result[order[r]] = r;
  return result;
}

std::vector<std::vector<uint32_t>> preferences(const Component &c) {
  auto rank = [&](auto key) { return rankBy(c.items.size(), key); };
  unsigned shift = 0;
  while ((c.maxLive >> shift) >= (uint64_t(1) << 31))
    ++shift;
  auto area = [&](uint32_t i) { return uint64_t(c.width(i)) * (c.size(i) >> shift); };
  return {rank([&](uint32_t i) { return std::tuple(uint64_t(c.width(i)), area(i), c.topLoad[i]); }),
          rank([&](uint32_t i) { return std::tuple(c.topLoad[i], area(i), uint64_t(c.width(i))); }),
          rank([&](uint32_t i) { return std::tuple(c.topLoad[i], uint64_t(c.width(i)), area(i)); })};
}

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: the i-th member, i >= 1.
uint64_t luby(uint64_t i) {
  for (;;) {
    uint64_t power = 1;
    while (2 * power - 1 < i)
      power *= 2;
    if (2 * power - 1 == i)
      return power;
    i -= power - 1;
  }
}

} // namespace

void packExactly(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                 uint64_t &work) {
  if (!component.singlePiece || component.items.size() > kExactItems)
    return;
  uint32_t sections = 0;
  std::vector<Rectangle> rectangles = reduceSections(component, sections);
  uint64_t unit = scaleSizes(rectangles);
  const std::vector<std::vector<uint32_t>> orders = preferences(component);
  uint32_t count = uint32_t(rectangles.size());
  auto attempt = [&](uint64_t capacity, uint64_t limit) {
    uint64_t until = work + limit;
    Random random(1);
    std::vector<uint64_t> failures(count, 0);
    for (uint32_t run = 0; work < until; ++run) {
      // The three orders as they are, then with some noise: where one run is lost in a bad first choice,
      // another is not, so many short runs and few long ones do best (limits after Luby, Sinclair, Zuckerman).
      // Items that were often in the way go earlier, by how much differs too.
      const std::vector<uint32_t> &order = orders[run % orders.size()];
      bool isPlain = run < orders.size();
      uint32_t noise = isPlain ? 1 : std::max<uint32_t>(1, count >> (1 + random.below(5)));
      uint32_t weight = isPlain ? 0 : random.below(7);
      std::vector<uint32_t> byFailures = rankBy(count, [&](uint32_t i) { return failures[i]; });
      for (Rectangle &r : rectangles)
        r.preference = 2 * (order[r.item] + random.below(noise)) + weight * byFailures[r.item];
      std::sort(rectangles.begin(), rectangles.end(), [](const Rectangle &x, const Rectangle &y) {
        return std::tuple(x.preference, x.item) < std::tuple(y.preference, y.item);
      });
      for (uint32_t k = 0; k < count; ++k)
        rectangles[k].preference = k;
      // One lifetime after the other, the preferred first within it: the search relies on both.
      std::sort(rectangles.begin(), rectangles.end(), [](const Rectangle &x, const Rectangle &y) {
        return std::tuple(x.begin, x.end, x.preference) < std::tuple(y.begin, y.end, y.preference);
      });
      uint64_t share = 1'000'000 * luby(run / orders.size() + 1);
      CanonicalSearch search(rectangles, sections, capacity / unit, std::min(share, (until - work + 1) / 2),
                             failures);
      Answer answer = search.run();
      work += 2 * search.work + 20 * count; // a step of the search takes twice as long as one elsewhere
      if (answer == Answer::kFound) {
        best.height = 0;
        for (uint32_t k = 0; k < count; ++k) {
          best.offsets[rectangles[k].item] = unit * search.result()[k];
          best.height = std::max(best.height, unit * (search.result()[k] + rectangles[k].size));
        }
        best.source = "exact";
      }
      if (answer != Answer::kLimit)
        return answer;
    }
    return Answer::kLimit;
  };
  // Most of the work for the target itself, the rest for heights between it and the best known.
  uint64_t low = std::max(target, component.bound()), spent = work;
  if (attempt(low, workLimit / 4 * 3) == Answer::kFound)
    return;
  while (best.height - low > low / 1000 + 1 && work - spent < workLimit) {
    uint64_t middle = low + (best.height - low) / 2;
    if (attempt(middle, std::min(workLimit / 8, workLimit - (work - spent))) != Answer::kFound)
      low = middle;
  }
}

} // namespace ortc::planning
