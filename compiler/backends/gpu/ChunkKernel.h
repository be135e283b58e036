// Kernels whose chunks are written for a thread of a CPU, a GPU's thread for each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launch of scatter_elements, a scan, arg_reduce or arg_sort by the generators of CPUs, whose function goes
/// into `module`. A chunk is what a thread does, with the order of sums that CPUs have. Fails with their diagnostic.
mlir::LogicalResult generateChunks(KernelBuilder &kernel, mlir::ModuleOp module, mlir::func::FuncOp function,
                                   const GeneratorOptions &options);

} // namespace ortc::gpu
