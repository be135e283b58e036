// The formulas of the optimizers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

Value spread(TensorBuilder &b, Value scalar, Value tensor) {
  return b.broadcast(b.cast(scalar, TensorBuilder::elementOf(tensor)), TensorBuilder::shapeOf(tensor), {});
}

/// scalar * tensor
static Value scale(TensorBuilder &b, Value tensor, Value scalar) {
  return b.mul(tensor, spread(b, scalar, tensor));
}

static Value oneMinus(TensorBuilder &b, Value scalar) { return b.sub(b.constantLike(scalar, 1), scalar); }

Value advanceCorrection(TensorBuilder &b, Value correction, Value beta) {
  return b.add(b.mul(beta, correction), oneMinus(b, beta));
}

MomentumUpdate buildSgd(TensorBuilder &b, const StepScalars &scalars, bool nesterov, Value parameter,
                        Value gradient, Value buffer) {
  if (scalars.weightDecay)
    gradient = b.add(gradient, scale(b, parameter, scalars.weightDecay));
  Value momentum, direction = gradient;
  if (buffer) {
    momentum = b.add(scale(b, buffer, scalars.momentum), gradient);
    direction = nesterov ? b.add(gradient, scale(b, momentum, scalars.momentum)) : momentum;
  }
  return {b.add(parameter, scale(b, direction, b.neg(scalars.lr))), momentum};
}

AdamUpdate buildAdam(TensorBuilder &b, const StepScalars &scalars, bool decoupled, Value parameter,
                     Value gradient, Value average, Value averageSquare) {
  if (scalars.weightDecay && decoupled)
    parameter = scale(b, parameter, oneMinus(b, b.mul(scalars.lr, scalars.weightDecay)));
  else if (scalars.weightDecay)
    gradient = b.add(gradient, scale(b, parameter, scalars.weightDecay));
  Value m = b.add(average, scale(b, b.sub(gradient, average), oneMinus(b, scalars.beta1)));
  Value square = b.mul(scale(b, gradient, oneMinus(b, scalars.beta2)), gradient);
  Value v = b.add(scale(b, averageSquare, scalars.beta2), square);

  Value one = b.constantLike(scalars.lr, 1);
  Value inverseRoot = b.div(one, b.sqrt(scalars.correction2));
  Value step = b.neg(b.div(scalars.lr, scalars.correction1));
  Value denominator = b.add(scale(b, b.sqrt(v), inverseRoot), spread(b, scalars.epsilon, v));
  return {b.add(parameter, b.div(scale(b, m, step), denominator)), m, v};
}

} // namespace ortc::train
