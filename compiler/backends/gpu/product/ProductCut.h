// How a product is cut: the tile that a block makes, and the parts of the depth that are summed side by side.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/Product.h"

namespace ortc::gpu {

/// A tile that a block can make, and what that takes on the machine of `kernels::ReferenceGpu`.
struct TileCandidate {
  int64_t rows, columns, depth;
  /// Cycles in which a step of `depth` keeps the multiprocessor busy, and in which the block waits beside that, for
  /// loads and for its own warps.
  double cycles, latency;
  double overhead;  ///< cycles of a block beside its steps
  int64_t resident; ///< blocks that a multiprocessor has at once
};

/// A candidate's number, and parts of the depth, none of which is empty.
struct ProductCut {
  size_t tile = 0;
  int64_t parts = 1;
};

/// Cycles from the launch to the last result; where the depth is cut into parts, with the launch that joins them.
double estimateCycles(const ProductShape &shape, const TileCandidate &tile, int64_t parts,
                      int64_t processors = kernels::ReferenceGpu::kProcessors);

/// The cut that takes least; of parts the fewest among almost equal times. It depends on the arguments alone, so the
/// order of sums does. `mayCutDepth`: else there is one part. `depthUnit`: the depth of a part is a multiple.
ProductCut chooseCut(const ProductShape &shape, llvm::ArrayRef<TileCandidate> tiles, bool mayCutDepth,
                     int64_t depthUnit);

/// The candidate that takes least with the parts that the shape has. `processors`: multiprocessors.
size_t chooseTile(const ProductShape &shape, llvm::ArrayRef<TileCandidate> tiles,
                  int64_t processors = kernels::ReferenceGpu::kProcessors);

} // namespace ortc::gpu
