// From a kernel's tensor program to its code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::cpu {

struct GeneratorOptions {
  Numerics numerics = Numerics::Fast;
  const KernelChoices *choices = nullptr; ///< KernelBlocking is complete only with them
  /// Position of the tensor names of index checks in the artifact's check names.
  llvm::StringMap<uint32_t> checkNames;
};

/// Generates the kernel that `function` (marked `plan.kind`, a tensor program) stands for into the empty
/// `module`, by the generator of its kind. Fails with a diagnostic on an operation that no generator makes.
mlir::FailureOr<KernelInfo> generateKernel(mlir::ModuleOp module, mlir::func::FuncOp function,
                                           const Target &target, const GeneratorOptions &options);

// Generators of single operations.

/// `i32 <name>.entry(ptr args, ptr detail)`: copies the indices and returns ORTC_STEP_RANGE at the first bad one.
KernelInfo generateCheck(mlir::ModuleOp module, mlir::func::FuncOp function, uint32_t nameIndex);

} // namespace ortc::cpu
