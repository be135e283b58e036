// Pooling and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::cpu {

/// Creates kernel `name` for one pooling operation in `module`; buffers are its operands, then its results.
/// Vectorised over channels. Windows are visited in row-major order, so bits depend on the shape alone. A
/// chunk is a run of rows along the batch and the first spatial dimension.
KernelInfo generatePoolKernel(mlir::ModuleOp module, llvm::StringRef name, mlir::Operation *op,
                              const Target &target);

} // namespace ortc::cpu
