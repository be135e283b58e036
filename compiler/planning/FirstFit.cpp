// First fit: each item, in a given order, goes into the lowest gap between the items already placed.
//
// Fills holes that a skyline cannot see. Needs the pairs of items that meet in time, so it is kept to small
// components; a pair of chains meets at the largest size each has while both exist.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/Component.h"

#include <algorithm>
#include <numeric>

namespace ortc::planning {

namespace {

/// Another item that exists at the same time: it keeps `above` bytes from its own offset on free of us, and
/// we must end `below` bytes after ours.
struct Neighbour {
  uint32_t item;
  uint64_t above, below;
};

class FirstFit {
public:
  FirstFit(const Component &component, uint64_t target, Placement &best, uint64_t &work)
      : component(component), target(target), best(best), work(work), neighbours(component.items.size()) {
    findNeighbours();
  }

  void run() {
    std::vector<uint32_t> order(component.items.size());
    std::iota(order.begin(), order.end(), 0u);
    auto by = [&](auto key, const char *name) {
      std::vector<uint32_t> sorted = order;
      std::sort(sorted.begin(), sorted.end(), [&](uint32_t x, uint32_t y) {
        auto left = key(x), right = key(y);
        return left != right ? left > right : x < y;
      });
      place(sorted, name);
    };
    const Component &c = component;
    by([&](uint32_t i) { return std::pair(c.size(i), uint64_t(c.width(i))); }, "first-fit:size");
    by([&](uint32_t i) { return std::pair(c.topLoad[i], c.size(i)); }, "first-fit:load,size");
    by([&](uint32_t i) { return std::pair(c.topLoad[i], uint64_t(c.width(i))); }, "first-fit:load,width");
    by([&](uint32_t i) { return std::pair(uint64_t(c.width(i)), c.size(i)); }, "first-fit:width");
    by([&](uint32_t i) { return std::pair(uint64_t(neighbours[i].size()), c.size(i)); },
       "first-fit:conflicts");
    by([&](uint32_t i) { return std::pair(uint64_t(c.sections - c.begin(i)), c.size(i)); },
       "first-fit:begin");
    // Every item finds its own place free again, or a lower one.
    by([&](uint32_t i) { return std::pair(UINT64_MAX - best.offsets[i], c.size(i)); }, "first-fit:gravity");
  }

private:
  void findNeighbours() {
    std::vector<uint32_t> byBegin(component.items.size());
    std::iota(byBegin.begin(), byBegin.end(), 0u);
    std::sort(byBegin.begin(), byBegin.end(), [&](uint32_t x, uint32_t y) {
      return component.begin(x) != component.begin(y) ? component.begin(x) < component.begin(y) : x < y;
    });
    std::vector<uint32_t> active;
    for (uint32_t i : byBegin) {
      active.erase(std::remove_if(active.begin(), active.end(),
                                  [&](uint32_t a) { return component.end(a) <= component.begin(i); }),
                   active.end());
      for (uint32_t a : active)
        addPair(i, a);
      work += active.size() * 4;
      active.push_back(i);
    }
  }

  void addPair(uint32_t x, uint32_t y) {
    uint32_t begin = std::max(component.begin(x), component.begin(y));
    uint64_t sizeX = sizeFrom(x, begin), sizeY = sizeFrom(y, begin);
    neighbours[x].push_back({y, sizeY, sizeX});
    neighbours[y].push_back({x, sizeX, sizeY});
  }

  /// Largest size of an item from a time on: the size at that time, for sizes fall.
  uint64_t sizeFrom(uint32_t i, uint32_t time) const {
    for (const Piece &piece : component.items[i].pieces)
      if (piece.end > time)
        return piece.size;
    return 0;
  }

  void place(const std::vector<uint32_t> &order, const char *name) {
    if (best.height <= target)
      return;
    offsets.assign(order.size(), UINT64_MAX);
    uint64_t height = 0;
    for (uint32_t i : order) {
      taken.clear();
      for (const Neighbour &n : neighbours[i])
        if (offsets[n.item] != UINT64_MAX)
          taken.push_back({offsets[n.item], n.above, n.below});
      std::sort(taken.begin(), taken.end(),
                [](const Taken &x, const Taken &y) { return x.offset < y.offset; });
      work += neighbours[i].size() + taken.size() * 8;
      uint64_t offset = lowest(component.items[i].alignment);
      offsets[i] = offset;
      height = std::max(height, offset + component.size(i));
      if (height >= best.height)
        return;
    }
    best.offsets = offsets;
    best.height = height;
    best.source = name;
  }

  /// Lowest offset that no taken range forbids. A neighbour at t forbids the offsets in (t - below,
  /// t + above), so the candidates are 0 and the ends of those ranges.
  uint64_t lowest(uint64_t alignment) const {
    uint64_t offset = 0;
    bool moved = true;
    while (moved) { // more than one round only where sizes of chains differ between neighbours
      moved = false;
      for (const Taken &t : taken)
        if (offset < t.offset + t.above && t.offset < offset + t.below) {
          offset = alignUp(t.offset + t.above, alignment);
          moved = true;
        }
    }
    return offset;
  }

  struct Taken {
    uint64_t offset, above, below;
  };

  const Component &component;
  uint64_t target;
  Placement &best;
  uint64_t &work;
  std::vector<std::vector<Neighbour>> neighbours;
  std::vector<uint64_t> offsets;
  std::vector<Taken> taken;
};

} // namespace

void packByFirstFit(const Component &component, uint64_t target, Placement &best, uint64_t &work) {
  FirstFit(component, target, best, work).run();
}

} // namespace ortc::planning
