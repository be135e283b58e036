// Products on tensor cores by groups of warps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/SharedTile.h"

namespace ortc::gpu {

/// The sums of the warp along `range`: of its 16 rows of each of the group's products, for every 8 columns the four
/// that TensorCore has. Other warps may still read the tiles afterwards.
llvm::SmallVector<mlir::Value> sumByGroups(ThreadBuilder &b, const MatrixPlan &plan, ProductAccess &access,
                                           IndexRange range, SharedTile &rows, SharedTile &columns);

} // namespace ortc::gpu
