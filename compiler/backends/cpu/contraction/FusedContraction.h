// From the form of a contraction to its kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ortc::cpu {

/// Creates the kernel of a tensor program that is a ContractionForm. `buffers` are the function's arguments,
/// then its results.
/// `choices`: as in ContractionSpec.
mlir::FailureOr<KernelInfo> generateFusedContraction(mlir::ModuleOp module, mlir::func::FuncOp function,
                                                     llvm::ArrayRef<emit::KernelBuffer> buffers,
                                                     const Target &target, Numerics numerics,
                                                     const KernelChoices *choices = nullptr);

} // namespace ortc::cpu
