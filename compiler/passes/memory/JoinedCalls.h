// Calls of kernels that become one call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/LoopProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace ortc::memory {

/// Calls of kernels of kind loop, of which none needs a result of another.
struct JoinedCalls {
  llvm::SmallVector<mlir::func::CallOp> calls;
  llvm::SetVector<mlir::Value> inputs;
  size_t outputs = 0;

  void add(mlir::func::CallOp call);
  /// Buffers of the call with `call` among them.
  size_t buffersWith(mlir::func::CallOp call) const;
};

/// Of a call: pairs of an operand and a result that have to share memory.
using PairsOfCall = llvm::function_ref<llvm::SmallVector<std::pair<int64_t, int64_t>>(mlir::func::CallOp,
                                                                                      mlir::func::FuncOp)>;

/// Adds a kernel of kind joined with the bodies of all kernels, one after the other, and a call of it before `place`,
/// and lets its results stand for those of the calls, which are erased. Users may stand before `place`.
mlir::func::CallOp joinCalls(llvm::ArrayRef<mlir::func::CallOp> calls, mlir::Operation *place,
                             mlir::SymbolTable &symbols, PairsOfCall pairsOf);

/// The functions of entries.
llvm::SmallVector<mlir::func::FuncOp> findEntries(mlir::ModuleOp module);

/// What a called kernel computes, where it is of kind loop.
std::optional<kernels::LoopProgram> loopOf(mlir::func::CallOp call, const mlir::SymbolTable &symbols);

/// What `value` is a reshape of, through any number of them.
mlir::Value rootOf(mlir::Value value);

} // namespace ortc::memory
