// One component of a packing problem, and the placements that pack it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/packing/Packing.h"

namespace ortc::planning {

/// Items that cannot be separated in time; time is compressed to the sections between events.
struct Component {
  std::vector<Item> items;
  std::vector<uint32_t> original; ///< per item: its index in the whole problem
  uint32_t sections = 0;
  std::vector<uint64_t> load;    ///< bytes alive, per section
  std::vector<uint64_t> topLoad; ///< per item: highest load of its sections
  uint64_t maxLive = 0;
  std::vector<uint64_t> extents; ///< per item: end of its highest byte, from its offset on
  uint64_t fixedTop = 0;         ///< end of the highest fixed item
  bool singlePiece = true;       ///< every item is one rectangle
  bool hasGaps = false;          ///< some pieces are not chains of falling size from the lowest byte on
  bool hasFixed = false, hasHints = false;

  uint32_t begin(uint32_t i) const { return items[i].pieces.front().begin; }
  uint32_t end(uint32_t i) const { return items[i].pieces.back().end; }
  uint64_t size(uint32_t i) const { return extents[i]; }
  bool isFixed(uint32_t i) const { return items[i].fixed != kAnywhere; }
  /// No packing of this component is lower.
  uint64_t bound() const { return maxLive > fixedTop ? maxLive : fixedTop; }
  uint32_t width(uint32_t i) const { return end(i) - begin(i); }
};

/// Placement being improved: best offsets so far and the work spent.
struct Placement {
  std::vector<uint64_t> offsets;
  uint64_t height = UINT64_MAX;
  std::string source;
};

/// Floor of each section, and the front of the queue of items that waits behind it, for placements that only
/// ever put items on top. A segment tree; every operation is O(log sections).
class Skyline {
public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  /// `load` breaks ties between equally high sections: the one with the highest load is reported.
  explicit Skyline(const std::vector<uint64_t> &load);
  void clear();

  struct Highest {
    uint64_t floor;
    uint32_t section; ///< one that has this floor
  };
  Highest highest(uint32_t begin, uint32_t end);

  /// Sets the floor over [begin, end) to `height`, which is nowhere below the present one.
  void raise(uint32_t begin, uint32_t end, uint64_t height);

  /// Says which rank is in front of the queue of `section`, kNobody if it is empty.
  void setFront(uint32_t section, uint32_t rank);

  struct Lowest {
    uint64_t floor;
    uint32_t rank; ///< kNobody: all queues are empty
    uint32_t section;
  };
  /// The lowest section with a queue; among equally low ones that with the best rank in front.
  Lowest lowest();

  uint32_t levels() const { return depth; }

private:
  struct Node {
    uint64_t top = 0;               ///< highest floor below
    uint64_t lowest = 0;            ///< lowest floor of a section with a queue
    uint32_t at = 0;                ///< section that has `top`
    uint32_t front = kNobody;       ///< best rank of all fronts below
    uint32_t lowestFront = kNobody; ///< best rank of the fronts at `lowest`
  };
  void assign(size_t node, uint64_t height);
  void push(size_t leaf);
  void pull(size_t node);
  bool higher(size_t left, size_t right) const;
  bool lower(size_t left, size_t right) const;

  uint32_t leaves = 1, depth = 0;
  const std::vector<uint64_t> &load;
  std::vector<Node> nodes;
  std::vector<uint64_t> assigned; ///< floor of all below, not yet handed down
  std::vector<uint32_t> hottest;  ///< section of highest load below a node
};

/// Places items lowest first, ties by `rank` (0 first). Gives up with false once the height reaches `cutoff` or
/// `work` passes `workLimit`.
bool placeLowestFirst(const Component &component, const std::vector<uint32_t> &rank, uint64_t cutoff,
                      uint64_t workLimit, Skyline &skyline, std::vector<uint64_t> &offsets, uint64_t &height,
                      uint64_t &work);

/// Skyline placements, one per key (the first whatever the limit), then gravity, into `best`.
void packByKeys(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                uint64_t &work);

/// Improves `best` (which must hold a packing) by skyline placements with perturbed order.
void packByPerturbation(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                        uint64_t &work);

/// First fit with every item at its hint where that is free, into `best`. Limited as packByFirstFit().
void packByHints(const Component &component, uint64_t target, Placement &best, uint64_t &work);

/// First fit in several orders, into `best`. Only for components of at most kFirstFitItems items.
inline constexpr uint32_t kFirstFitItems = 4096;
void packByFirstFit(const Component &component, uint64_t target, Placement &best, uint64_t &work);

/// Exact search for a packing of at most `target`, then for the lowest one, into `best`.
/// Does nothing unless component.singlePiece, nor for more than kExactItems items: it recurses once per item.
inline constexpr uint32_t kExactItems = 2000;
void packExactly(const Component &component, uint64_t target, uint64_t workLimit, Placement &best,
                 uint64_t &work);

} // namespace ortc::planning
