// Skyline placement: always put down the item that can start lowest, and improve by perturbing its ties.
//
// Items wait in queues, each behind a section that all of its items cross and whose floor none of them can
// start below. Only the front of the lowest queue is looked at: it is placed, or it moves behind a higher
// section that it also crosses. Among equally high sections the one with the highest load is taken, so that
// the nested lifetimes of a training step share one queue; keeping the items themselves in a heap under the
// offset they had when last looked at made every placement touch all of them (n * n on such problems).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/packing/Component.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ortc::planning {

static constexpr uint64_t kUnassigned = UINT64_MAX;

Skyline::Skyline(const std::vector<uint64_t> &load) : load(load) {
  while (leaves < load.size()) {
    leaves *= 2;
    ++depth;
  }
  hottest.resize(2 * size_t(leaves));
  for (uint32_t s = 0; s < leaves; ++s)
    hottest[leaves + s] = std::min<uint32_t>(s, uint32_t(load.size()) - 1);
  for (size_t node = leaves - 1; node > 0; --node) {
    uint32_t left = hottest[2 * node], right = hottest[2 * node + 1];
    hottest[node] = load[right] > load[left] ? right : left;
  }
  clear();
}

void Skyline::clear() {
  nodes.assign(2 * size_t(leaves), {});
  for (size_t node = 1; node < nodes.size(); ++node)
    nodes[node].at = hottest[node];
  assigned.assign(2 * size_t(leaves), kUnassigned);
}

void Skyline::assign(size_t node, uint64_t height) {
  assigned[node] = height;
  nodes[node].top = nodes[node].lowest = height;
  nodes[node].at = hottest[node];
  nodes[node].lowestFront = nodes[node].front;
}

/// Hands assignments above `leaf` down to the children of its ancestors.
void Skyline::push(size_t leaf) {
  for (uint32_t level = depth; level > 0; --level) {
    size_t node = leaf >> level;
    if (assigned[node] == kUnassigned)
      continue;
    assign(2 * node, assigned[node]);
    assign(2 * node + 1, assigned[node]);
    assigned[node] = kUnassigned;
  }
}

bool Skyline::higher(size_t left, size_t right) const {
  const Node &l = nodes[left], &r = nodes[right];
  return l.top != r.top ? l.top > r.top : load[l.at] >= load[r.at];
}

bool Skyline::lower(size_t left, size_t right) const {
  const Node &l = nodes[left], &r = nodes[right];
  if (l.lowestFront == kNobody || r.lowestFront == kNobody)
    return l.lowestFront != kNobody;
  return l.lowest != r.lowest ? l.lowest < r.lowest : l.lowestFront < r.lowestFront;
}

void Skyline::pull(size_t node) {
  const Node &left = nodes[2 * node], &right = nodes[2 * node + 1];
  const Node &top = higher(2 * node, 2 * node + 1) ? left : right;
  const Node &low = lower(2 * node, 2 * node + 1) ? left : right;
  nodes[node] = {top.top, low.lowest, top.at, std::min(left.front, right.front), low.lowestFront};
}

Skyline::Highest Skyline::highest(uint32_t begin, uint32_t end) {
  size_t low = size_t(begin) + leaves, high = size_t(end) + leaves;
  push(low);
  push(high - 1);
  size_t best = 0;
  auto look = [&](size_t node) {
    if (best == 0 || !higher(best, node))
      best = node;
  };
  for (; low < high; low /= 2, high /= 2) {
    if (low & 1)
      look(low++);
    if (high & 1)
      look(--high);
  }
  return {nodes[best].top, nodes[best].at};
}

void Skyline::raise(uint32_t begin, uint32_t end, uint64_t height) {
  size_t low = size_t(begin) + leaves, high = size_t(end) + leaves;
  size_t first = low, last = high - 1;
  push(first);
  push(last);
  for (; low < high; low /= 2, high /= 2) {
    if (low & 1)
      assign(low++, height);
    if (high & 1)
      assign(--high, height);
  }
  for (first /= 2, last /= 2; first > 0; first /= 2, last /= 2) {
    if (assigned[first] == kUnassigned)
      pull(first);
    if (first != last && assigned[last] == kUnassigned)
      pull(last);
  }
}

void Skyline::setFront(uint32_t section, uint32_t rank) {
  size_t node = size_t(section) + leaves;
  push(node);
  nodes[node].front = nodes[node].lowestFront = rank;
  for (node /= 2; node > 0; node /= 2)
    pull(node);
}

Skyline::Lowest Skyline::lowest() {
  if (nodes[1].lowestFront == kNobody)
    return {0, kNobody, 0};
  size_t node = 1;
  while (node < leaves) {
    if (assigned[node] != kUnassigned) {
      assign(2 * node, assigned[node]);
      assign(2 * node + 1, assigned[node]);
      assigned[node] = kUnassigned;
    }
    node = 2 * node + (lower(2 * node, 2 * node + 1) ? 0 : 1);
  }
  return {nodes[1].lowest, nodes[1].lowestFront, uint32_t(node - leaves)};
}

/// Lowest offset of an item on the floors as they are. Where it has gaps, it may sink deeper than the floor
/// over its whole life.
static uint64_t restingOffset(const Component &component, const Item &item, uint64_t floor,
                              Skyline &skyline) {
  if (component.hasGaps) {
    floor = 0;
    for (const Piece &piece : item.pieces)
      floor = std::max(floor, std::max(skyline.highest(piece.begin, piece.end).floor, piece.low) - piece.low);
  }
  return alignUp(floor, item.alignment);
}

/// Puts the fixed items in their places and raises the floors to the tops of the highest.
static void placeFixed(const Component &component, Skyline &skyline, std::vector<uint64_t> &offsets) {
  std::vector<std::pair<uint64_t, const Piece *>> tops;
  for (uint32_t i = 0; i < component.items.size(); ++i) {
    const Item &item = component.items[i];
    if (!component.isFixed(i))
      continue;
    offsets[i] = item.fixed;
    for (const Piece &piece : item.pieces)
      tops.push_back({item.fixed + piece.low + piece.size, &piece});
  }
  std::sort(tops.begin(), tops.end(), [](const auto &x, const auto &y) { return x.first < y.first; });
  for (auto [top, piece] : tops)
    skyline.raise(piece->begin, piece->end, top);
}

bool placeLowestFirst(const Component &component, const std::vector<uint32_t> &rank, uint64_t cutoff,
                      uint64_t workLimit, Skyline &skyline, std::vector<uint64_t> &offsets, uint64_t &height,
                      uint64_t &work) {
  struct Queue {
    std::vector<uint32_t> ranks;          // a heap, best in front
    uint32_t begin = 0, end = UINT32_MAX; // sections that all of its items cross, or fewer
  };
  uint32_t count = uint32_t(rank.size()), onGround = 0; // items from rank onGround on were not looked at yet
  std::vector<Queue> queues(component.sections);
  std::vector<uint32_t> itemOf(count);
  for (uint32_t i = 0; i < count; ++i)
    itemOf[rank[i]] = i;
  auto add = [](Queue &queue, uint32_t newRank) {
    queue.ranks.push_back(newRank);
    std::push_heap(queue.ranks.begin(), queue.ranks.end(), std::greater<>());
  };
  auto showFront = [&](uint32_t section) {
    skyline.setFront(section,
                     queues[section].ranks.empty() ? Skyline::kNobody : queues[section].ranks.front());
  };
  skyline.clear();
  offsets.resize(count);
  height = component.fixedTop;
  if (height >= cutoff)
    return false;
  if (component.hasFixed)
    placeFixed(component, skyline, offsets);
  uint64_t cost = 2 + 2 * skyline.levels();
  work += 4 * count + 6 * component.sections;
  for (uint32_t placed = 0; placed < count;) {
    work += 2 * cost;
    if (work > workLimit)
      return false;
    Skyline::Lowest next = {0, Skyline::kNobody, 0};
    if (onGround == count)
      next = skyline.lowest();
    bool fromGround = next.rank == Skyline::kNobody;
    if (fromGround)
      next.rank = onGround++;
    uint32_t i = itemOf[next.rank];
    const Item &item = component.items[i];
    if (component.isFixed(i)) {
      ++placed;
      continue;
    }
    Skyline::Highest highest = skyline.highest(component.begin(i), component.end(i));
    Queue &other = queues[highest.section];
    if (!fromGround) {
      Queue &queue = queues[next.section];
      if (highest.floor > next.floor && highest.section >= queue.begin && highest.section < queue.end) {
        // All items of the queue cross that section: they move together, the fewer into the more.
        if (other.ranks.size() < queue.ranks.size())
          std::swap(other, queue);
        for (uint32_t moved : queue.ranks)
          add(other, moved);
        work += 8 * queue.ranks.size() + 2 * cost;
        other.begin = std::max(other.begin, queue.begin);
        other.end = std::min(other.end, queue.end);
        queue = Queue();
        showFront(highest.section);
        showFront(next.section);
        continue;
      }
      std::pop_heap(queue.ranks.begin(), queue.ranks.end(), std::greater<>());
      queue.ranks.pop_back();
      if (queue.ranks.empty())
        queue = Queue();
      showFront(next.section);
      work += cost;
    }
    if (highest.floor > next.floor) {
      add(other, next.rank);
      other.begin = std::max(other.begin, component.begin(i));
      other.end = std::min(other.end, component.end(i));
      if (other.ranks.front() == next.rank)
        showFront(highest.section);
      work += cost;
      continue;
    }
    ++placed;
    offsets[i] = restingOffset(component, item, highest.floor, skyline);
    for (const Piece &piece : item.pieces) {
      skyline.raise(piece.begin, piece.end, offsets[i] + piece.low + piece.size);
      work += cost;
    }
    height = std::max(height, offsets[i] + component.size(i));
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
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    return offsets[x] != offsets[y] ? offsets[x] < offsets[y] : x < y;
  });
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
    offsets[i] = alignUp(skyline.highest(component.begin(i), component.end(i)).floor, item.alignment);
    for (const Piece &piece : item.pieces)
      skyline.raise(piece.begin, piece.end, offsets[i] + piece.size);
    height = std::max(height, offsets[i] + component.size(i));
  }
  return height < before;
}

/// Upside down and dropped, then back: closes gaps that the first placement left under the top.
void settle(const Component &component, Skyline &skyline, Placement &best, uint64_t &work) {
  if (!component.singlePiece || component.hasFixed)
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
  static constexpr int kMaxIdle = 3000; ///< placements without gain after which the search gives up

  Perturbation(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
               uint64_t &work)
      : component(component), base(rankByOffset(best.offsets)), target(target), workLimit(workLimit),
        best(best), work(work), skyline(component.load) {}

  void run() {
    uint32_t count = uint32_t(component.items.size());
    std::vector<uint64_t> offsets;
    std::vector<uint32_t> rank(count), order(count);
    std::vector<int64_t> key(count);
    for (int idle = 0; idle < kMaxIdle && work < workLimit && best.height > target;) {
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
      if (!placeLowestFirst(component, rank, best.height, workLimit, skyline, offsets, height, work)) {
        ++idle;
        continue;
      }
      idle = 0;
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
        if (best.offsets[i] + component.size(i) == best.offsets[at] &&
            component.begin(i) < component.end(at) && component.begin(at) < component.end(i)) {
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

/// By rising cost on deep training graphs; the last ones are left out there.
constexpr KeyRule kKeyRules[] = {
    {"skyline:size", [](const Component &c, uint32_t i) { return Key{c.size(i), c.width(i)}; }},
    {"skyline:load,width", [](const Component &c, uint32_t i) { return Key{c.topLoad[i], c.width(i)}; }},
    {"skyline:width", [](const Component &c, uint32_t i) { return Key{c.width(i)}; }},
    {"skyline:area", [](const Component &c, uint32_t i) { return Key{area(c, i)}; }},
    {"skyline:load,area", [](const Component &c, uint32_t i) { return Key{c.topLoad[i], area(c, i)}; }},
    {"skyline:width*sqrt(size)",
     [](const Component &c, uint32_t i) { return Key{uint64_t(c.width(i)) * squareRoot(coarseSize(c, i))}; }},
    {"skyline:end", [](const Component &c, uint32_t i) { return Key{c.end(i)}; }},
    {"skyline:begin", [](const Component &c, uint32_t i) { return Key{c.sections - c.begin(i)}; }},
};

} // namespace

void packByKeys(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                uint64_t &work) {
  Skyline skyline(component.load);
  std::vector<uint64_t> offsets;
  std::vector<Key> keys(component.items.size());
  for (const KeyRule &rule : kKeyRules) {
    for (uint32_t i = 0; i < keys.size(); ++i)
      keys[i] = rule.key(component, i);
    // One placement there must be; a gap below 0.1 % is worth half of the work.
    bool close = best.height > target && best.height - target < target / 1000;
    uint64_t height = 0, most = close ? workLimit / 2 : workLimit,
             limit = best.offsets.empty() ? UINT64_MAX : most;
    if (!placeLowestFirst(component, rankBy(component, keys), best.height, limit, skyline, offsets, height,
                          work)) {
      if (work >= most)
        break;
      continue;
    }
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
  if (best.height > target && !component.hasFixed)
    Perturbation(component, target, workLimit, best, work).run();
}

} // namespace ortc::planning
