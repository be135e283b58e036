// The formulas of the optimizers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's definitions. Scalars are f64 of rank 0, as PyTorch computes with them in Python; they are rounded
// to the parameter's type where they meet it. Every tensor operation is elementwise on the parameter's shape,
// so that an update can become one kernel.
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::train {

/// Hyper-parameters of one step, f64 of rank 0. Null where the optimizer has none, or where it is compiled
/// out.
struct StepScalars {
  mlir::Value lr, weightDecay, momentum, beta1, beta2, epsilon;
  /// adam: 1 - beta1^t and 1 - beta2^t of this step t.
  mlir::Value correction1, correction2;
};

struct MomentumUpdate {
  mlir::Value parameter, momentum; ///< momentum is null without one
};
struct AdamUpdate {
  mlir::Value parameter, average, averageSquare;
};

/// g += weight_decay p; v = momentum v + g; p -= lr v (with nesterov: lr (g + momentum v)). `buffer` is v
/// before the step, zeros at first: PyTorch's first step, v = g, is the same.
MomentumUpdate buildSgd(nn::TensorBuilder &builder, const StepScalars &scalars, bool nesterov,
                        mlir::Value parameter, mlir::Value gradient, mlir::Value buffer);

/// adam: g += weight_decay p; adamw (`decoupled`): p *= 1 - lr weight_decay. Then
/// m += (g - m)(1 - beta1); v = beta2 v + (1 - beta2) g g; p -= lr / correction1 m / (sqrt(v / correction2) +
/// epsilon).
AdamUpdate buildAdam(nn::TensorBuilder &builder, const StepScalars &scalars, bool decoupled,
                     mlir::Value parameter, mlir::Value gradient, mlir::Value average,
                     mlir::Value averageSquare);

/// 1 - beta^t from 1 - beta^(t-1), as beta c + (1 - beta): no power, no cancellation, zero at the start. It
/// is the sum of the weights in the moving average, also when beta changes on the way. Within 1e-13 of 1 -
/// pow(beta, t) for t up to 1e6.
mlir::Value advanceCorrection(nn::TensorBuilder &builder, mlir::Value correction, mlir::Value beta);

/// The f64 scalar, rounded to the element type of `tensor` and repeated to its shape.
mlir::Value spread(nn::TensorBuilder &builder, mlir::Value scalar, mlir::Value tensor);

} // namespace ortc::train
