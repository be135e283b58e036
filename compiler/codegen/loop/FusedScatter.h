//===- FusedScatter.h - a table of sums that only a loop reads -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/loop/LoopProgram.h"
#include "compiler/codegen/loop/ScatterKernel.h"

namespace ortc::codegen {

/// A scatter_add into a large table and elementwise operations on every element of the sums, as one kernel: a block of rows is
/// summed in the worker's workspace and worked on there, so the sums are no tensor in memory.
struct FusedScatter {
  ScatterPlan plan;
  mlir::Type element;        ///< of the sums
  unsigned indices, updates; ///< inputs
  LoopProgram program;       ///< the elementwise operations; the sums are a buffer between inputs and outputs

  /// Nothing, with a `reason`, when `inputs` and `outputs` are not those of such a kernel. Everything between them is defined by
  /// operations outside of any plan.kernel boundary.
  static std::optional<FusedScatter> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                             std::string &reason);

  /// Pairs of an input and an output, one after the other, that may share memory.
  llvm::SmallVector<int64_t> inPlacePairs() const;

  /// Creates the kernel. `buffers` are inputs, then outputs; `info` has its name and bytes.
  KernelInfo emit(LoopBuilder &builder, mlir::ModuleOp module, llvm::ArrayRef<KernelBuffer> buffers,
                  KernelInfo info, const Target &target, Numerics numerics) const;

private:
  unsigned sums() const { return program.buffers.size() - program.outputs.size() - 1; }
};

} // namespace ortc::codegen
