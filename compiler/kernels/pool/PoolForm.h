// Pooling and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/KernelWork.h"
#include "mlir/IR/Operation.h"

namespace ortc::kernels {

/// Of max_pool, avg_pool and their gradients: a step for each tap of each window.
KernelWork workOfPool(mlir::Operation *op);

} // namespace ortc::kernels
