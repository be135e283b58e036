// Contractions with views of their operands and elementwise operations on their result, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launch of a kernel of kind contraction. The order of summation of an element is that of the k dims, or that
/// of 16 lanes where `usesDotKernel` says so: the same as on CPUs, but for fast numerics, which cut long sums into
/// parts.
mlir::LogicalResult generateContraction(KernelBuilder &kernel, mlir::func::FuncOp function,
                                        const GeneratorOptions &options);

} // namespace ortc::gpu
