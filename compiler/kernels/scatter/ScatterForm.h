// Sums of rows at places that indices name, and a table of sums that only a loop reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/KernelWork.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/nn/NnDialect.h"

#include <optional>
#include <string>

namespace ortc::kernels {

/// How the work of a scatter_add is cut, whose tensors are seen as [outer, rows, columns] and [outer, count,
/// columns]. A block has all columns of some rows or, where there are few rows, some columns of all.
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

/// A scatter_add into a large table and elementwise operations on every element of the sums, as one kernel: a
/// block of rows is summed in the worker's workspace and worked on there, so the sums are no tensor in
/// memory.
struct FusedScatter {
  ScatterPlan plan;
  mlir::Type element;        ///< of the sums
  unsigned indices, updates; ///< inputs
  LoopProgram program;       ///< the elementwise operations; the sums are a buffer between inputs and outputs

  /// Nothing, with a `reason`, when `inputs` and `outputs` are not those of such a kernel. Everything between
  /// them is defined by operations outside of any plan.kernel boundary.
  static std::optional<FusedScatter> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                             std::string &reason);

  /// Pairs of an input and an output, one after the other, that may share memory.
  llvm::SmallVector<int64_t> inPlacePairs() const;

  KernelWork work() const; ///< without bytes

  /// The buffer of the sums, in `program`.
  unsigned sums() const { return program.buffers.size() - program.outputs.size() - 1; }
};

/// Of a scatter_add, scatter or scatter_elements alone, without bytes.
KernelWork workOfScatter(mlir::Operation *op);

} // namespace ortc::kernels
