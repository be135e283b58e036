// The limits that a training program keeps to for a family of backends, before it is cut into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::kernels {

/// How much is computed at a time where a program could compute everything at once. What breaks these is not wrong, but
/// slow, or takes memory. The values here are those of CPUs, where caches count; elsewhere launches do
/// (docs/decisions/0058-decisions-of-families.md).
struct TrainingLimits {
  /// Scores of attention that an iteration of its loop computes, which its gradient computes again; 0: those of a head.
  int64_t iterationBytes = 0;
  /// Scores of some rows, a tile: they are written, read and read again. A tile has at least `tileRows` rows.
  int64_t tileBytes = int64_t(2) << 20, tileRows = 64;
  /// Elements of a head up to which attention stays whole, in one iteration: its kernel stores no scores; 0: it never
  /// does.
  int64_t attentionDepth = 0;
  /// Logits of a chunk of the head's rows.
  int64_t chunkBytes = int64_t(64) << 20;

  bool operator==(const TrainingLimits &) const = default;
};

} // namespace ortc::kernels
