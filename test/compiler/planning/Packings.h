// Packing problems for tests: seeded random ones with every feature.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/packing/Packing.h"
#include "test/compiler/planning/Problems.h"

namespace ortc::planning::test {

struct PackingFeatures {
  bool alignments = false; ///< of 1, 2 or 4
  bool fixed = false;      ///< some offsets are fixed, hints for some
  bool chains = false;     ///< pieces of falling size
  bool gaps = false;       ///< holes in lifetimes and windows
};

inline uint64_t extentOf(const Item &item) {
  uint64_t extent = 0;
  for (const Piece &piece : item.pieces)
    extent = std::max(extent, piece.low + piece.size);
  return extent;
}

/// Whether two items take a common byte at one time, at these offsets.
inline bool overlap(const Item &x, uint64_t atX, const Item &y, uint64_t atY) {
  for (const Piece &p : x.pieces)
    for (const Piece &q : y.pieces)
      if (p.begin < q.end && q.begin < p.end && atX + p.low < atY + q.low + q.size &&
          atY + q.low < atX + p.low + p.size)
        return true;
  return false;
}

/// `count` items of 1 to 8 bytes in [0, sections). Fixed offsets never clash.
inline PackingProblem randomPacking(uint32_t seed, uint32_t count, uint32_t sections,
                                    const PackingFeatures &features) {
  std::mt19937 random(seed);
  PackingProblem problem;
  problem.sections = sections;
  for (uint32_t i = 0; i < count; ++i) {
    Item item;
    uint32_t begin = draw(random, 0, sections - 1);
    uint32_t end = draw(random, begin + 1, sections);
    uint64_t size = draw(random, 1, 8), whole = size;
    while (begin < end) {
      uint32_t stop =
          (features.chains || features.gaps) && draw(random, 0, 2) == 0 ? draw(random, begin + 1, end) : end;
      if (!item.pieces.empty() && features.gaps && draw(random, 0, 1) == 0) {
        // A window of the whole, or nothing until the next piece.
        uint64_t low = draw(random, 0, uint32_t(whole) - 1);
        uint64_t window = draw(random, 0, uint32_t(whole - low));
        const Piece &before = item.pieces.back();
        if (window > 0 && (before.size != window || before.low != low))
          item.pieces.push_back({begin, stop, window, low});
      } else if (item.pieces.empty() || item.pieces.back().size != size || item.pieces.back().low != 0 ||
                 item.pieces.back().end != begin) {
        item.pieces.push_back({begin, stop, size});
      } else {
        item.pieces.back().end = stop;
      }
      begin = stop;
      if (features.chains && size > 1)
        size = draw(random, 1, uint32_t(size) - 1);
    }
    if (features.alignments)
      item.alignment = uint64_t(1) << draw(random, 0, 2);
    if (features.fixed && draw(random, 0, 2) == 0) {
      uint64_t offset = item.alignment * draw(random, 0, 10 / uint32_t(item.alignment));
      bool isFree = true;
      for (const Item &other : problem.items)
        isFree = isFree && (other.fixed == kAnywhere || !overlap(item, offset, other, other.fixed));
      if (isFree)
        item.fixed = offset;
    } else if (features.fixed && draw(random, 0, 2) == 0) {
      item.hint = draw(random, 0, 20);
    }
    problem.items.push_back(item);
  }
  return problem;
}

} // namespace ortc::planning::test
