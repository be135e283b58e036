// Packing problems as CSV in MiniMalloc's format, both ways.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/packing/Packing.h"

#include <string_view>

namespace ortc::planning {

struct PackingFile {
  PackingProblem problem;
  std::vector<std::string> ids;                         ///< per item
  std::vector<uint32_t> pools;                          ///< per item; empty: all lie in pool 0
  std::vector<std::pair<uint32_t, uint32_t>> lifetimes; ///< per item; empty: from first to last piece
};

/// A header that names the columns, in any order, then a line per buffer:
///
///   id (or buffer, buffer_id)    any text
///   lower, upper                 alive in [lower, upper); `begin` and `start` stand for lower, and `end` for an
///                                inclusive upper end, of gaps too
///   size                         bytes
///   alignment                    of the offset, a power of two; default 1
///   gaps                         separated by spaces: FROM-TO, when no byte is needed, or FROM-TO@LOW:HIGH, when
///                                only the bytes [LOW, HIGH) of the buffer are
///   hint                         an offset that is tried first; empty or -1: none
///   offset                       the offset it must get; empty: none
///   pool                         number of the memory space; default 0
///
/// Other columns are passed over. Refuses with "line N: ..."; the result has passed checkPacking().
Expected<PackingFile> readPacking(std::string_view text);

/// The same with the offsets of a solution; without one, with the fixed offsets. Columns that say nothing are
/// left out. Chains of falling size come out as gaps with a window.
std::string writePacking(const PackingFile &file, const std::vector<uint64_t> &offsets = {});

} // namespace ortc::planning
