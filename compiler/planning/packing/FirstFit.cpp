// First fit: each item, in a given order, goes into the lowest gap between the items already placed.
//
// Fills holes that a skyline cannot see. Needs the pairs of items that meet in time, so it is kept to small
// components. A pair keeps one distance upwards and one downwards, the largest over the times when both exist:
// an item lies wholly above or wholly below another, never between two of its pieces.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/packing/Component.h"

#include <algorithm>
#include <numeric>

namespace ortc::planning {

namespace {

/// Another item that exists at the same time: we start at least `above` bytes after its offset, or it starts at
/// least `below` bytes after ours. Windows of gaps can make one of the two negative, never their sum.
struct Neighbour {
  uint32_t item;
  int64_t above, below;
};

class FirstFit {
public:
  FirstFit(const Component &component, uint64_t target, Placement &best, uint64_t &work)
      : component(component), target(target), best(best), work(work), neighbours(component.items.size()) {
    findNeighbours();
  }

  /// Everything at its hint where that is free, the rest from the largest down.
  void runHints() {
    std::vector<uint32_t> order(component.items.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
      uint64_t left = component.items[x].hint, right = component.items[y].hint;
      if (left != right)
        return left < right;
      return component.size(x) != component.size(y) ? component.size(x) > component.size(y) : x < y;
    });
    useHints = true;
    place(order, "first-fit:hints");
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
    const std::vector<Piece> &mine = component.items[x].pieces, &others = component.items[y].pieces;
    bool meet = false;
    int64_t above = 0, below = 0;
    for (size_t i = 0, k = 0; i < mine.size() && k < others.size();) {
      const Piece &m = mine[i], &o = others[k];
      if (m.begin < o.end && o.begin < m.end) {
        int64_t up = int64_t(o.low + o.size) - int64_t(m.low),
                down = int64_t(m.low + m.size) - int64_t(o.low);
        above = meet ? std::max(above, up) : up;
        below = meet ? std::max(below, down) : down;
        meet = true;
      }
      ++(m.end <= o.end ? i : k);
      ++work;
    }
    if (!meet)
      return;
    neighbours[x].push_back({y, above, below});
    neighbours[y].push_back({x, below, above});
  }

  void place(const std::vector<uint32_t> &order, const char *name) {
    if (best.height <= target)
      return;
    offsets.assign(order.size(), kAnywhere);
    uint64_t height = component.fixedTop;
    for (uint32_t i : order)
      offsets[i] = component.items[i].fixed;
    for (uint32_t i : order) {
      if (component.isFixed(i))
        continue;
      taken.clear();
      for (const Neighbour &n : neighbours[i])
        if (offsets[n.item] != kAnywhere)
          taken.push_back({int64_t(offsets[n.item]), n.above, n.below});
      std::sort(taken.begin(), taken.end(),
                [](const Taken &x, const Taken &y) { return x.offset < y.offset; });
      work += neighbours[i].size() + taken.size() * 8;
      uint64_t offset = chooseOffset(component.items[i]);
      offsets[i] = offset;
      height = std::max(height, offset + component.size(i));
      if (height >= best.height)
        return;
    }
    best.offsets = offsets;
    best.height = height;
    best.source = name;
  }

  uint64_t chooseOffset(const Item &item) const {
    if (useHints && item.hint != kAnywhere && item.hint % item.alignment == 0 &&
        std::none_of(taken.begin(), taken.end(),
                     [&](const Taken &t) { return t.forbids(int64_t(item.hint)); }))
      return item.hint;
    return lowest(item.alignment);
  }

  /// Lowest offset that no taken range forbids; the candidates are 0 and the upper ends of those ranges.
  uint64_t lowest(uint64_t alignment) const {
    uint64_t offset = 0;
    bool moved = true;
    while (moved) { // more than one round only where distances differ between neighbours
      moved = false;
      for (const Taken &t : taken)
        if (t.forbids(int64_t(offset))) {
          offset = alignUp(uint64_t(t.offset + t.above), alignment);
          moved = true;
        }
    }
    return offset;
  }

  /// A neighbour that has its place.
  struct Taken {
    int64_t offset, above, below;
    bool forbids(int64_t start) const { return start < offset + above && offset < start + below; }
  };

  const Component &component;
  uint64_t target;
  Placement &best;
  uint64_t &work;
  bool useHints = false;
  std::vector<std::vector<Neighbour>> neighbours;
  std::vector<uint64_t> offsets;
  std::vector<Taken> taken;
};

} // namespace

void packByHints(const Component &component, uint64_t target, Placement &best, uint64_t &work) {
  FirstFit(component, target, best, work).runHints();
}

void packByFirstFit(const Component &component, uint64_t target, Placement &best, uint64_t &work) {
  FirstFit(component, target, best, work).run();
}

} // namespace ortc::planning
