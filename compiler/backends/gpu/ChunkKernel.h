// Kernels whose chunks are written for a thread of a CPU, a GPU's thread for each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Makes the launches of scatter_elements, scans, arg_reduce and arg_sort by the generators of CPUs: a chunk is what a
/// thread does, with the order of sums that CPUs have.
mlir::FailureOr<GpuKernel> generateChunks(mlir::ModuleOp module, mlir::func::FuncOp function,
                                          const Processor &processor, const GeneratorOptions &options);

} // namespace ortc::gpu
