// Elementwise operations on other shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::nn {

/// Whether `op` is elementwise: arith and math on tensors of one shape, with one result.
bool isElementwise(mlir::Operation *op);
/// The same, or what gives an operand as it is and chooses where gradients go.
bool isElementwiseForward(mlir::Operation *op);

/// The same operation on `operands`, with a result of the shape `shape`, which they have.
mlir::Value createElementwise(TensorBuilder &builder, mlir::Operation *op, mlir::ValueRange operands,
                              llvm::ArrayRef<int64_t> shape);

} // namespace ortc::nn
