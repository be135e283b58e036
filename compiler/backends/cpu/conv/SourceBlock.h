// Blocks of the source of a convolution, in a worker's workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/kernels/conv/ConvShape.h"

namespace ortc::cpu {

/// A block of a source image in a kernel's workspace, with a border of zeros, or the image itself where no
/// walk leaves it.
struct SourceBlock {
  llvm::SmallVector<int64_t, 3> image;  // spatial sizes of the image
  llvm::SmallVector<int64_t, 3> sizes;  // of the block
  llvm::SmallVector<int64_t, 3> origin; // block index of image position 0, in dimension 0 for grid block 0
  int64_t channels;
  int64_t blockPoints; // grid points of dimension 0 that a block serves
  int64_t blocks;      // per image
  int64_t rowStep; // image rows between the first rows of two blocks' neighbours: sourceStride of dimension 0
  bool copied;     // into the workspace

  int64_t elements() const;
  /// Makes blocks of at most `most` grid points of `points`.
  void limitPoints(int64_t most, int64_t points);
};

/// Chooses a block that fits a second-level cache for the walks of all phases (`walks[phase][d]`).
SourceBlock planSource(llvm::ArrayRef<llvm::SmallVector<kernels::Walk, 3>> walks,
                       llvm::ArrayRef<int64_t> image, int64_t channels, int64_t elementBytes);

} // namespace ortc::cpu
