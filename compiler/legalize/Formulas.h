// Functions that several handlers are made of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written so that values and gradients are finite wherever the function's are, with PyTorch's choice at
// kinks: an argument is cut off before a function that would overflow, and the cut passes the gradient on the
// right side.
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::legalize {

/// condition ? a : c as the model writes it: what is left out passes no gradient on (dialects/nn/Choices.h).
mlir::Value choose(nn::TensorBuilder &b, mlir::Value condition, mlir::Value a, mlir::Value c);
/// x where it is above zero, else 0; the gradient at 0 is 0.
mlir::Value relu(nn::TensorBuilder &b, mlir::Value x);
/// The part of x that is at most zero, and the gradient at 0 is 1.
mlir::Value negativePart(nn::TensorBuilder &b, mlir::Value x);
mlir::Value sigmoid(nn::TensorBuilder &b, mlir::Value x);
/// The x of a value that `sigmoid` gave; null for others.
mlir::Value findSigmoid(mlir::Value y);
/// `y`, a function of x whose derivative is `slope`.
mlir::Value withSlope(nn::TensorBuilder &b, mlir::Value x, mlir::Value y, mlir::Value slope);
mlir::Value softplus(nn::TensorBuilder &b, mlir::Value x);
mlir::Value softsign(nn::TensorBuilder &b, mlir::Value x);
/// x where it is above zero, else `negative`, whose derivative holds at 0.
mlir::Value positiveOr(nn::TensorBuilder &b, mlir::Value x, mlir::Value negative);
mlir::Value leakyRelu(nn::TensorBuilder &b, mlir::Value x, double alpha);
mlir::Value elu(nn::TensorBuilder &b, mlir::Value x, double alpha);
/// x where it is above alpha, else 0.
mlir::Value thresholdedRelu(nn::TensorBuilder &b, mlir::Value x, double alpha);
/// alpha * x + beta inside [0, 1].
mlir::Value hardSigmoid(nn::TensorBuilder &b, mlir::Value x, double alpha, double beta);
/// x inside the bounds; gradient 0 on a bound. NaN passes. A null bound is none.
mlir::Value clip(nn::TensorBuilder &b, mlir::Value x, mlir::Value low, mlir::Value high,
                 bool isUnsigned = false);
/// sqrt(x) with gradient 0 at 0.
mlir::Value rootOrZero(nn::TensorBuilder &b, mlir::Value x);
/// x to a constant power, by multiplication where the exponent is a small integer or half of one.
mlir::Value power(nn::TensorBuilder &b, mlir::Value x, double exponent);
/// The larger (or smaller) one; equal elements share the gradient. NaN passes.
mlir::Value extremum(nn::TensorBuilder &b, mlir::Value a, mlir::Value c, bool larger,
                     bool isUnsigned = false);
/// Unsigned integers as signed ones in the same order, and back: the topmost bit is turned over.
mlir::Value turnSign(nn::TensorBuilder &b, mlir::Value x);
/// -1, 0 or 1.
mlir::Value sign(nn::TensorBuilder &b, mlir::Value x);
/// x * sigmoid(alpha * x).
mlir::Value swish(nn::TensorBuilder &b, mlir::Value x, double alpha);
mlir::Value gelu(nn::TensorBuilder &b, mlir::Value x, bool tanhApproximation);
/// (x - mean) / sqrt(variance + epsilon) over `axes`; optionally hands out mean and inverse deviation, kept
/// as size 1.
mlir::Value normalize(nn::TensorBuilder &b, mlir::Value x, llvm::ArrayRef<int64_t> axes, double epsilon,
                      mlir::Value *mean = nullptr, mlir::Value *inverse = nullptr);

/// x / sqrt(mean(x^2) + epsilon) over `axes`; optionally hands out the factor, kept as size 1.
mlir::Value normalizeByRoot(nn::TensorBuilder &b, mlir::Value x, llvm::ArrayRef<int64_t> axes, double epsilon,
                            mlir::Value *inverse = nullptr);

/// A contraction by labels, as Einstein wrote it: every dimension of an operand has a letter, equal letters
/// are multiplied together, letters that are not in `result` are summed. No letter twice in one operand;
/// sizes of equal letters are equal or 1.
mlir::Value contract(nn::TensorBuilder &b, mlir::Value lhs, llvm::StringRef lhsLabels, mlir::Value rhs,
                     llvm::StringRef rhsLabels, llvm::StringRef result, bool exact = false);
/// Sums and permutes one operand in the same way.
mlir::Value contract(nn::TensorBuilder &b, mlir::Value x, llvm::StringRef labels, llvm::StringRef result);
/// NumPy's matmul; ranks of 1 and up, shapes have been checked.
mlir::Value matmul(nn::TensorBuilder &b, mlir::Value lhs, mlir::Value rhs);

} // namespace ortc::legalize
