// Pooling and its gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launch of a kernel of kind pool: an element of the result is a thread's. Windows are visited in row-major
/// order, as on CPUs.
mlir::LogicalResult generatePool(KernelBuilder &kernel, mlir::func::FuncOp function);

} // namespace ortc::gpu
