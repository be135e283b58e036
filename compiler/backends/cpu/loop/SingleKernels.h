// Scatters, scans, arg_reduce and arg_sort.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/emit/LoopBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ortc::cpu {

/// Whether `function` is one scatter_add, scatter_elements, cumsum, arg_reduce or arg_sort of its arguments.
bool isSingleKernel(mlir::func::FuncOp function);

/// Emits the kernel of a function that `isSingleKernel` accepts. `info` has its name.
mlir::FailureOr<KernelInfo> emitSingleKernel(emit::LoopBuilder &builder, mlir::ModuleOp module,
                                             mlir::func::FuncOp function,
                                             llvm::ArrayRef<emit::KernelBuffer> buffers, KernelInfo info,
                                             const Target &target);

} // namespace ortc::cpu
