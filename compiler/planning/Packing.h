// Offsets for items whose lifetimes are fixed: the strip packing part of memory planning.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_COMPILER_PLANNING_PACKING_H
#define ORTC_COMPILER_PLANNING_PACKING_H

#include "compiler/planning/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ortc::planning {

/// Bytes [offset, offset + size) are taken during the half-open time [begin, end).
struct Piece {
  uint32_t begin = 0, end = 0;
  uint64_t size = 0;
};

/// What gets one offset. Several pieces follow each other in time and start at the same offset: a chain of
/// in-place writes of falling size.
struct Item {
  std::vector<Piece> pieces; ///< at least one; neither empty in time nor of size 0; in order, no gaps
  uint64_t alignment = 1;
};

struct PackingProblem {
  std::vector<Item> items; ///< the sum of their largest sizes is at most 2^62
  uint32_t sections = 0;   ///< ends of pieces are at most this
};

struct PackingOptions {
  uint64_t work = 300'000'000;      ///< limit of the improvement after the first placements
  uint64_t exactWork = 100'000'000; ///< limit of the exact search, on top
  uint64_t target = 0; ///< stop as soon as the height is at most this (max-live is always enough)
};

struct Packing {
  std::vector<uint64_t> offsets; ///< per item
  uint64_t height = 0;           ///< end of the highest item
  uint64_t maxLive = 0;          ///< no packing is lower
  uint64_t work = 0;
  std::string source; ///< placement that gave the height, of the component that was hardest
};

/// Packs as low as the limits allow. Deterministic. Always succeeds.
///
/// 1. The problem is cut at times that no item crosses; components are packed alone.
/// 2. Skyline: always place the item that can start lowest over everything placed so far, ties by a key;
///    several keys. O(n log n) each.
/// 3. First fit in several orders, for at most 4096 items.
/// 4. Skyline again with perturbed keys, biased to the items that carry the top; each improvement is also
///    flipped upside down and dropped (gravity), which never raises it.
/// 5. Exact search (small components with one piece per item), when asked for.
/// A component is finished as soon as its height is at most the max-live of the whole problem.
Packing pack(const PackingProblem &problem, const PackingOptions &options = {});

/// Checks offsets: alignment, no two items overlap in time and place, height. O(n log n), and shares no
/// code with pack().
Status validatePacking(const PackingProblem &problem, const std::vector<uint64_t> &offsets, uint64_t height);

} // namespace ortc::planning

#endif // ORTC_COMPILER_PLANNING_PACKING_H
