//===- ScatterKernel.h - sums of rows at places that indices name ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/LoopBuilder.h"
#include "compiler/codegen/Target.h"
#include "dialects/nn/NnDialect.h"

namespace ortc::codegen {

/// How the work of a scatter_add is cut, whose tensors are seen as [outer, rows, columns] and [outer, count, columns]. A block
/// has all columns of some rows or, where there are few rows, some columns of all.
struct ScatterPlan {
  explicit ScatterPlan(nn::ScatterAddOp op);
  bool cutsRows() const { return blockRows < rows; }
  int64_t rowBlocks() const { return (rows + blockRows - 1) / blockRows; }
  int64_t columnBlocks() const { return (columns + blockColumns - 1) / blockColumns; }
  /// Steps for one block, about.
  int64_t work() const;

  int64_t outer, rows, columns, count;
  int64_t blockRows, blockColumns;
};

/// A block of the sums.
struct ScatterBlock {
  mlir::Value outer, row, column; ///< where it begins
  mlir::Value buffer, start;      ///< where its first row is kept, from column zero on
};

/// Emits one block: zeros, then what the indices bring there, for every row in their order.
void emitScatterBlock(LoopBuilder &builder, const ScatterPlan &plan, mlir::Type element, mlir::Value indices,
                      mlir::Value updates, const ScatterBlock &block, const Target &target);

/// `combine` on values in the form of buffers.
mlir::Value combineStored(LoopBuilder &builder, nn::ReduceKind kind, mlir::Type element, mlir::Value x,
                          mlir::Value y);

} // namespace ortc::codegen
