// Products of a block of the depth, of 16 rows: where sums of f32 numbers leave the matrix core.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/SharedTile.h"

namespace ortc::gpu {

/// Fragments of a block.
inline constexpr int64_t kBlockSteps = kPromotedDepth / kFragment;

/// Fragment `number` of a side at the kBlockSteps steps from `firstStep` on, by part, then step.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> loadBlock(SharedTile &side, mlir::Value place,
                                                            int64_t number, int64_t firstStep, int64_t parts);

/// Adds the products of `rows`, a block of the rows' side, and of columns from fragment `firstNumber` on, as many as
/// there are sums for. Sums of f32 numbers are sums of their own, small products of all steps first, so that few are
/// truncated beside large sums; others go on.
void addBlock(ThreadBuilder &b, const MatrixPlan &plan, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> rows,
              SharedTile &columns, mlir::Value place, int64_t firstNumber, int64_t firstStep,
              llvm::MutableArrayRef<mlir::Value> sums);

} // namespace ortc::gpu
