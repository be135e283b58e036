// Parts of formulas that have two branches, with gradients that are right in both.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::train {

/// max(x, 0). NaN goes on; at zero the gradient is 0.
mlir::Value clampAtZero(nn::TensorBuilder &b, mlir::Value x);
/// 1 / (1 + exp(-x)), without overflow.
mlir::Value sigmoid(nn::TensorBuilder &b, mlir::Value x);
/// log(1 + exp(x)), without overflow.
mlir::Value softplus(nn::TensorBuilder &b, mlir::Value x);
/// The cross entropy of logits x and probabilities y: softplus(x) - x y, with 1/2 - y as the gradient at zero.
mlir::Value binaryCrossEntropy(nn::TensorBuilder &b, mlir::Value x, mlir::Value y);

} // namespace ortc::train
