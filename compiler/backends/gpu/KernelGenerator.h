// From a kernel's tensor program to its launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Generates the functions that `function` (marked `plan.kind`, a tensor program) stands for into the empty `module`.
/// Returns how they are launched. There are none where all outputs are empty. Fails with a diagnostic on an operation
/// that no generator makes.
mlir::FailureOr<GpuKernel> generateKernel(mlir::ModuleOp module, mlir::func::FuncOp function,
                                          const Processor &processor, const GeneratorOptions &options);

} // namespace ortc::gpu
