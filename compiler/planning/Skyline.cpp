// Skyline placement: always put down the item that can start lowest, and improve by perturbing its ties.
//
// The floor of every section is kept in a segment tree with range maximum and range raise; floors never
// fall, so no lazy propagation is needed and both run bottom-up. Items wait in a heap under the lowest
// offset they had when last looked at, which is a lower bound of the true one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/Component.h"

#include <algorithm>
#include <numeric>

namespace ortc::planning {

Skyline::Skyline(uint32_t sections) {
  while (leaves < sections) {
    leaves *= 2;
    ++depth;
  }
  clear();
}

void Skyline::clear() {
  top.assign(2 * size_t(leaves), 0);
  whole.assign(2 * size_t(leaves), 0);
}

uint64_t Skyline::floor(uint32_t begin, uint32_t end) const {
  uint64_t result = 0;
  size_t low = size_t(begin) + leaves, high = size_t(end) + leaves;
  size_t first = low, last = high - 1;
  for (; low < high; low /= 2, high /= 2) {
    if (low & 1)
      result = std::max(result, top[low++]);
    if (high & 1)
      result = std::max(result, top[--high]);
  }
  for (; first > 0; first /= 2, last /= 2)
    result = std::max({result, whole[first], whole[last]});
  return result;
}

void Skyline::raise(uint32_t begin, uint32_t end, uint64_t height) {
  size_t low = size_t(begin) + leaves, high = size_t(end) + leaves;
  size_t first = low, last = high - 1;
  auto cover = [&](size_t node) {
    whole[node] = std::max(whole[node], height);
    top[node] = std::max(top[node], height);
  };
  for (; low < high; low /= 2, high /= 2) {
    if (low & 1)
      cover(low++);
    if (high & 1)
      cover(--high);
  }
  for (first /= 2, last /= 2; first > 0; first /= 2, last /= 2)
    for (size_t node : {first, last})
      top[node] = std::max(whole[node], std::max(top[2 * node], top[2 * node + 1]));
}

bool placeLowestFirst(const Component &component, const std::vector<uint32_t> &rank, uint64_t cutoff, Skyline &skyline,
                      std::vector<uint64_t> &offsets, uint64_t &height, uint64_t &work) {
  struct Waiting {
    uint64_t offset;
    uint32_t rank, item;
    bool operator<(const Waiting &other) const { // std::push_heap keeps the largest in front
      return offset != other.offset ? offset > other.offset : rank > other.rank;
    }
  };
  size_t count = component.items.size();
  std::vector<Waiting> heap(count);
  for (uint32_t i = 0; i < count; ++i)
    heap[i] = {0, rank[i], i};
  std::make_heap(heap.begin(), heap.end());
  skyline.clear();
  offsets.resize(count);
  height = 0;
  uint64_t cost = 4 * skyline.levels();
  work += count;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Waiting at = heap.back();
    const Item &item = component.items[at.item];
    work += cost;
    uint64_t offset = alignUp(skyline.floor(component.begin(at.item), component.end(at.item)), item.alignment);
    if (offset > at.offset) {
      heap.back().offset = offset;
      std::push_heap(heap.begin(), heap.end());
      continue;
    }
    heap.pop_back();
    offsets[at.item] = offset;
    for (const Piece &piece : item.pieces)
      skyline.raise(piece.begin, piece.end, offset + piece.size);
    height = std::max(height, offset + item.pieces.front().size);
    if (height >= cutoff)
      return false;
  }
  return true;
}

namespace {

/// A key of an item: compared first by `major`, then by `minor`. Integers, because a compiler may contract
/// floating-point products differently on another machine.
struct Key {
  uint64_t major = 0, minor = 0;
};

/// Ranks by falling key, ties by falling size and rising index.
std::vector<uint32_t> rankBy(const Component &component, const std::vector<Key> &keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    if (keys[x].major != keys[y].major)
      return keys[x].major > keys[y].major;
    if (keys[x].minor != keys[y].minor)
      return keys[x].minor > keys[y].minor;
    if (component.size(x) != component.size(y))
      return component.size(x) > component.size(y);
    return x < y;
  });
  std::vector<uint32_t> rank(order.size());
  for (uint32_t r = 0; r < order.size(); ++r)
    rank[order[r]] = r;
  return rank;
}

/// Ranks by rising offset. Placing lowest first by these ranks gives the same offsets again, or lower ones.
std::vector<uint32_t> rankByOffset(const std::vector<uint64_t> &offsets) {
  std::vector<uint32_t> order(offsets.size()), rank(offsets.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t x, uint32_t y) { return offsets[x] != offsets[y] ? offsets[x] < offsets[y] : x < y; });
  for (uint32_t r = 0; r < order.size(); ++r)
    rank[order[r]] = r;
  return rank;
}

/// Lowers every item as far as it falls, in the order of their offsets. Never raises one.
bool drop(const Component &component, const std::vector<uint64_t> &from, Skyline &skyline,
          std::vector<uint64_t> &offsets, uint64_t &height, uint64_t &work) {
  std::vector<uint32_t> order(from.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t x, uint32_t y) { return from[x] != from[y] ? from[x] < from[y] : x < y; });
  skyline.clear();
  uint64_t before = height;
  height = 0;
  offsets.resize(from.size());
  work += order.size() * (4 * skyline.levels());
  for (uint32_t i : order) {
    const Item &item = component.items[i];
    offsets[i] = alignUp(skyline.floor(component.begin(i), component.end(i)), item.alignment);
    for (const Piece &piece : item.pieces)
      skyline.raise(piece.begin, piece.end, offsets[i] + piece.size);
    height = std::max(height, offsets[i] + component.size(i));
  }
  return height < before;
}

/// Upside down and dropped, then back: closes gaps that the first placement left under the top.
void settle(const Component &component, Skyline &skyline, Placement &best, uint64_t &work) {
  if (!component.singlePiece)
    return; // a chain of falling sizes stands on its offset and has no mirror image
  std::vector<uint64_t> flipped(best.offsets.size()), dropped;
  for (int turn = 0; turn < 4; ++turn) {
    for (uint32_t i = 0; i < flipped.size(); ++i)
      flipped[i] = best.height - best.offsets[i] - component.size(i);
    uint64_t height = best.height;
    drop(component, flipped, skyline, dropped, height, work);
    if (height > best.height)
      return; // only where alignments differ
    bool lower = height < best.height;
    best.offsets = dropped;
    best.height = height;
    if (turn % 2 == 1 && !lower)
      return;
  }
}

class Perturbation {
public:
  Perturbation(const Component &component, uint64_t target, uint64_t workLimit, Placement &best, uint64_t &work)
      : component(component), base(rankByOffset(best.offsets)), target(target), workLimit(workLimit), best(best),
        work(work), skyline(component.sections) {}

  void run() {
    uint32_t count = uint32_t(component.items.size());
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> rank(count), order(count);
    std::vector<int64_t> key(count);
    while (work < workLimit && best.height > target) {
      for (uint32_t i = 0; i < count; ++i)
        key[i] = int64_t(base[i]) * 4;
      uint32_t changes = 1 + random.below(8);
      if (random.below(10) == 0)
        changes += count / 20;
      uint32_t reach = std::max<uint32_t>(2, count >> (3 * random.below(4)));
      for (uint32_t c = 0; c < changes; ++c) {
        uint32_t i = random.below(3) == 0 ? topItem(random.below(4)) : random.below(count);
        key[i] += 4 * (int64_t(random.below(2 * reach)) - reach) + 2;
      }
      std::iota(order.begin(), order.end(), 0u);
      std::sort(order.begin(), order.end(),
                [&](uint32_t x, uint32_t y) { return key[x] != key[y] ? key[x] < key[y] : x < y; });
      for (uint32_t r = 0; r < count; ++r)
        rank[order[r]] = r;
      work += count * 8;
      uint64_t height = 0;
      if (!placeLowestFirst(component, rank, best.height, skyline, offsets, height, work))
        continue;
      best.offsets = offsets;
      best.height = height;
      best.source = "skyline:perturbed";
      settle(component, skyline, best, work);
      base = rankByOffset(best.offsets);
    }
  }

private:
  /// An item at the top, or one `hops` below it that carries it.
  uint32_t topItem(uint32_t hops) {
    uint32_t count = uint32_t(component.items.size()), start = random.below(count), at = start;
    work += count / 4;
    for (uint32_t k = 0; k < count; ++k) {
      uint32_t i = (start + k) % count;
      if (best.offsets[i] + component.size(i) == best.height) {
        at = i;
        break;
      }
    }
    for (; hops > 0; --hops) {
      uint32_t from = random.below(count), below = at;
      work += count / 4;
      for (uint32_t k = 0; k < count; ++k) {
        uint32_t i = (from + k) % count;
        if (best.offsets[i] + component.size(i) == best.offsets[at] && component.begin(i) < component.end(at) &&
            component.begin(at) < component.end(i)) {
          below = i;
          break;
        }
      }
      at = below;
    }
    return at;
  }

  const Component &component;
  std::vector<uint32_t> base; ///< rank per item that gave the best height
  uint64_t target, workLimit;
  Placement &best;
  uint64_t &work;
  Skyline skyline;
  Random random{1};
};

/// The keys: larger goes first among the items that can start equally low.
struct KeyRule {
  const char *name;
  Key (*key)(const Component &, uint32_t);
};

/// Size in units that keep products with a width below 2^63.
uint64_t coarseSize(const Component &c, uint32_t i) {
  unsigned shift = 0;
  while ((c.maxLive >> shift) >= (uint64_t(1) << 31))
    ++shift;
  return c.size(i) >> shift;
}

uint64_t area(const Component &c, uint32_t i) { return uint64_t(c.width(i)) * coarseSize(c, i); }

/// Whole part of the square root.
uint64_t squareRoot(uint64_t value) {
  uint64_t root = 0;
  for (uint64_t bit = uint64_t(1) << 31; bit != 0; bit /= 2)
    if ((root + bit) * (root + bit) <= value)
      root += bit;
  return root;
}

constexpr KeyRule kKeyRules[] = {
    {"skyline:area", [](const Component &c, uint32_t i) { return Key{area(c, i)}; }},
    {"skyline:size", [](const Component &c, uint32_t i) { return Key{c.size(i), c.width(i)}; }},
    {"skyline:width", [](const Component &c, uint32_t i) { return Key{c.width(i)}; }},
    {"skyline:width*sqrt(size)",
     [](const Component &c, uint32_t i) { return Key{uint64_t(c.width(i)) * squareRoot(coarseSize(c, i))}; }},
    {"skyline:load,area", [](const Component &c, uint32_t i) { return Key{c.topLoad[i], area(c, i)}; }},
    {"skyline:load,width", [](const Component &c, uint32_t i) { return Key{c.topLoad[i], c.width(i)}; }},
    {"skyline:begin", [](const Component &c, uint32_t i) { return Key{c.sections - c.begin(i)}; }},
    {"skyline:end", [](const Component &c, uint32_t i) { return Key{c.end(i)}; }},
};

} // namespace

void packByKeys(const Component &component, uint64_t target, Placement &best, uint64_t &work) {
  Skyline skyline(component.sections);
  std::vector<uint64_t> offsets;
  std::vector<Key> keys(component.items.size());
  for (const KeyRule &rule : kKeyRules) {
    for (uint32_t i = 0; i < keys.size(); ++i)
      keys[i] = rule.key(component, i);
    uint64_t height = 0;
    if (!placeLowestFirst(component, rankBy(component, keys), best.height, skyline, offsets, height, work))
      continue;
    best.offsets = offsets;
    best.height = height;
    best.source = rule.name;
    if (best.height <= target)
      return;
  }
  settle(component, skyline, best, work);
}

void packByPerturbation(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                        uint64_t &work) {
  if (best.height > target)
    Perturbation(component, target, workLimit, best, work).run();
}

} // namespace ortc::planning
