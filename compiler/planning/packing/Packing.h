// Offsets for items whose lifetimes are fixed: the strip packing part of memory planning.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ortc::planning {

/// The bytes [low, low + size) of an item are taken during the half-open time [begin, end).
struct Piece {
  uint32_t begin = 0, end = 0;
  uint64_t size = 0;
  uint64_t low = 0;
};

inline constexpr uint64_t kAnywhere = UINT64_MAX;

/// What gets one offset. Several pieces follow each other in time: a chain of in-place writes of falling size,
/// or a buffer with gaps, during which it needs none or only a window of its bytes.
struct Item {
  std::vector<Piece> pieces; ///< at least one; neither empty in time nor of size 0; in order of time
  uint64_t alignment = 1;
  uint64_t fixed = kAnywhere; ///< the offset it must get
  uint64_t hint = kAnywhere;  ///< an offset that is tried first
};

struct PackingProblem {
  std::vector<Item> items;
  uint32_t sections = 0; ///< ends of pieces are at most this
};

/// Says whether pack() can take the problem: pieces, alignments (powers of two up to 1 MiB), sizes (the sum of
/// all, on top of the highest fixed offset, is at most 2^62), fixed items that do not overlap each other.
Status checkPacking(const PackingProblem &problem);

struct PackingOptions {
  uint64_t work = 300'000'000;      ///< limit of the improvement after the first placements
  uint64_t exactWork = 100'000'000; ///< limit of the exact search, on top
  uint64_t target = 0; ///< stop as soon as the height is at most this (max-live is always enough)
};

struct Packing {
  std::vector<uint64_t> offsets; ///< per item
  uint64_t height = 0;           ///< end of the highest item
  uint64_t maxLive = 0;          ///< most bytes taken at one time
  uint64_t bound = 0;            ///< no packing is lower: max-live, or the end of a fixed item
  uint64_t work = 0;
  std::string source; ///< placement that gave the height, of the component that was hardest
};

/// Packs as low as the limits allow. Deterministic. Always succeeds; `problem` must be one that checkPacking()
/// accepts.
///
/// 1. The problem is cut at times that no item crosses; components are packed alone.
/// 2. Where there are hints: first fit with every item at its hint if that is free.
/// 3. Skyline: always place the item that can start lowest over everything placed so far, ties by a key;
///    several keys. O(n log n) each. Around fixed items it only builds on top.
/// 4. First fit in several orders, for at most 4096 items.
/// 5. Skyline again with perturbed keys, biased to the items that carry the top; each improvement is also
///    flipped upside down and dropped (gravity), which never raises it. Not around fixed items.
/// 6. Exact search (small components with one piece per item), when asked for.
/// A component is finished as soon as its height is at most the bound of the whole problem.
Packing pack(const PackingProblem &problem, const PackingOptions &options = {});

/// The items of one memory space, a problem of its own.
struct Pool {
  uint32_t number = 0;
  std::vector<uint32_t> items; ///< indices in the whole problem
  PackingProblem problem;
};

/// Splits a problem by the pool that each item lies in, rising by number. Pools share nothing but time, so each
/// is packed and judged alone, with a capacity of its own.
std::vector<Pool> splitPools(const PackingProblem &problem, const std::vector<uint32_t> &poolOf);

/// Checks offsets: alignment, fixed offsets, no two items overlap in time and place, height. O(n log n), and
/// shares no code with pack().
Status validatePacking(const PackingProblem &problem, const std::vector<uint64_t> &offsets, uint64_t height);

} // namespace ortc::planning
