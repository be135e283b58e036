// Convolutions and their gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/LaunchFunction.h"

namespace ortc::gpu {

/// Adds the launch of a kernel of kind conv: an element of the result is a thread's, which sums in the order of filter
/// positions, then channels (forward), of filter positions, then features (input gradient), or of images, then
/// positions (filter gradient).
mlir::LogicalResult generateConv(KernelBuilder &kernel, mlir::func::FuncOp function,
                                 const GeneratorOptions &options);

} // namespace ortc::gpu
