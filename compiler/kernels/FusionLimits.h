// The limits that fusion keeps to for a family of backends.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ortc::kernels {

struct AttentionForm;

/// Fusion goes by these where it can cut a program into kernels in several ways. A kernel that breaks them is
/// not wrong, only slow. Every family of backends hands its own to fusion; the values here are those of CPUs
/// (docs/benchmarks/contractions.md).
struct FusionLimits {
  size_t operations = 160; ///< of a loop: larger ones are not better
  size_t buffers = 28;     ///< of any kernel
  size_t epilogueOperations =
      32; ///< of a kernel with an epilogue, which is emitted once per tile shape and vector
  int64_t largeBytes = 2 << 20; ///< larger tensors leave a core's caches
  int64_t parallelPieces = 8;   ///< pieces of work below which joining loops must not reduce their number
  int64_t longRow = INT64_MAX;  ///< elements of a row from which on it is `longRowPieces` pieces
  int64_t longRowPieces = 1;
  /// Buffers of a kernel that updates several tensors, from `joinedBytes` of gradients; 0: one tensor a kernel.
  size_t joinedBuffers = 0;
  int64_t joinedBytes = 0;
  /// Sums over leading dimensions whose rows a backend shares out by itself: they are whole where they have at most so
  /// many rows, read at most `wholeColumnBytes` or are of `columnGroups` groups of 32 columns. Others are cut into
  /// parts of so many rows. 0: they are cut as CPUs want it.
  int64_t columnRows = 0, wholeColumnBytes = 0, columnGroups = 0;
  /// Every kernel is launched: loops of one iteration are no loops, products read through transposes and slices, and
  /// take what follows them in the backward part.
  bool fewKernels = false;
  /// Elements of a head, times parts of 16 bits that each is multiplied in, up to which attention is a kernel without
  /// scores in memory; 0: it never is.
  int64_t attentionParts = 0;
  /// Whether every target has the kernel of such attention; null: they have.
  std::function<bool(const AttentionForm &)> hasAttention = nullptr;
  /// Columns, rows and steps of the sum that a tile of a contraction has where the dims have as many. A view that cuts
  /// dims smaller stays a kernel of its own.
  int64_t tileColumns = 16, tileRows = 12, tileDepth = 16;
};

} // namespace ortc::kernels
