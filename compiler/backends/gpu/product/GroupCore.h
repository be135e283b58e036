// Products of groups of four warps (wgmma), which read both sides from shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All lanes of a group make them together, in order. They run beside what the group does next: sums are in the making
// until `waitForProducts`, and what they read may not change until then.
#pragma once

#include "compiler/backends/gpu/product/MatrixTile.h"

namespace ortc::gpu {

/// Warps of a group, and rows of a product, whose columns are a multiple of 8 up to 256, and whose depth is kFragment.
inline constexpr int64_t kGroupWarps = 4, kGroupRows = 64;
/// Tiles in shared memory begin at multiples of this: chunks are swizzled by bits of their addresses.
inline constexpr int64_t kGroupAlignment = 1024;

/// A side of a product in shared memory: where it begins, and how its lines of 128 bytes follow each other. Their
/// chunks of 16 bytes are swizzled by the number of the line modulo 8.
struct GroupOperand {
  mlir::Value descriptor; ///< i64
  /// Whether neighbours in a line are along the depth; else rows or columns, and lines are steps.
  bool isAlongDepth = true;
};
/// The descriptor of what `place` points to. `panelBytes`: between neighbouring lines of a step, where lines are steps.
mlir::Value describeOperand(ThreadBuilder &b, mlir::Value place, int64_t panelBytes);
/// That of so many bytes further, a multiple of 16.
mlir::Value advanceOperand(ThreadBuilder &b, mlir::Value descriptor, int64_t bytes);
mlir::Value advanceOperand(ThreadBuilder &b, mlir::Value descriptor, mlir::Value bytes);

/// Begins sums += rows * columns, where `sums` are a lane's of a warp's 16 rows: for every 8 columns those four that
/// TensorCore has.
llvm::SmallVector<mlir::Value> beginProduct(ThreadBuilder &b, MatrixNumber number, const GroupOperand &rows,
                                            const GroupOperand &columns, mlir::ValueRange sums);
/// Comes before the first product whose sums others have written.
void fenceSums(ThreadBuilder &b);
/// Products since the last one are a group.
void closeProducts(ThreadBuilder &b);
/// Waits for all groups but the last `pending`; the sums as they are then.
llvm::SmallVector<mlir::Value> waitForProducts(ThreadBuilder &b, int64_t pending, mlir::ValueRange sums);
/// Products after the next barrier see everything that the thread has written or copied to shared memory.
void fenceShared(ThreadBuilder &b);

} // namespace ortc::gpu
