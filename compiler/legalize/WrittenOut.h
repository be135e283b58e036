// Functions that exporters write out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX has no operator for many a function, and exporters write its formula, which has the function's values and not
// always its derivatives: log(sigmoid(x)) is infinity times zero for an x far below 0, atan(y / x) at x = 0. Each of
// these takes the operands of the formula's last operator and finds the function by what they were made of.
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::legalize {

/// log(x); stable as the logarithm of sigmoid(z), of 1 - sigmoid(z) and of exp(a) + exp(c), and with the derivative of
/// logit at 0 and 1 where x is z / (1 - z).
mlir::Value logarithm(nn::TensorBuilder &b, mlir::Value x);
/// sqrt(x), with gradient 0 at 0 where x is a sum of squares or a variance, as norms and deviations have it.
mlir::Value root(nn::TensorBuilder &b, mlir::Value x);
/// x to a power between 0 and 1, the same way; null where x is neither a sum of squares nor a variance.
mlir::Value rootOfSquares(nn::TensorBuilder &b, mlir::Value x, double exponent);
/// condition ? a : c where that is the angle of a point or x log(y); null where it is neither.
mlir::Value chooseWrittenOut(nn::TensorBuilder &b, mlir::Value condition, mlir::Value a, mlir::Value c);

/// a - c where that is the binary cross-entropy of a probability, with PyTorch's derivative at 0 and 1; null elsewhere.
mlir::Value subtractWrittenOut(nn::TensorBuilder &b, mlir::Value a, mlir::Value c);
/// The score of a hidden key: minus infinity for the lowest finite number; others are themselves.
mlir::Value hiddenScore(nn::TensorBuilder &b, mlir::Value score);

} // namespace ortc::legalize
