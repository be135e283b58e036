// Convolutions and their gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launches of a kernel of kind conv: products of matrices that are gathered while they are read
/// (ConvAccess.h).
mlir::LogicalResult generateConv(KernelBuilder &kernel, mlir::func::FuncOp function,
                                 const GeneratorOptions &options);

} // namespace ortc::gpu
