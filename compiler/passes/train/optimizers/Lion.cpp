// The optimizer lion: that of its authors (arXiv:2302.06675), as the package lion_pytorch has it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

/// 1, -1, or x itself where it is 0 or NaN.
static Value signOf(nn::TensorBuilder &b, Value x) {
  Value zero = b.zerosLike(x);
  Value below = b.select(b.compare(arith::CmpFPredicate::OLT, x, zero), b.constantLike(x, -1), x);
  return b.select(b.compare(arith::CmpFPredicate::OGT, x, zero), b.constantLike(x, 1), below);
}

/// p *= 1 - lr weight_decay; p -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g.
void updateLion(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayParameter();
  Value &m = step.states[kAverage];
  auto average = [&](const char *key) {
    Value beta = step.scalar(key);
    return b.add(step.scale(m, beta), step.scale(step.gradient, oneMinus(b, beta)));
  };
  Value direction = signOf(b, average(kBeta1));
  m = average(kBeta2);
  step.parameter = b.add(step.parameter, step.scale(direction, b.neg(step.scalar(kLr))));
}

std::vector<Key> lionKeys() {
  return {lrKey(1e-4), betaKey(kBeta1, 0.9, "share of the average in the direction"),
          betaKey(kBeta2, 0.99, "factor of the average of gradients"), ownDecayKey(0), maximizeKey()};
}

const OptimizerDefinition kLionOptimizer = {
    .name = "lion",
    .meaning = "steps of one size, in the direction of an average of gradients",
    .keys = lionKeys(),
    .states = {{kAverage}},
    .update = updateLion,
    .movesAlways = momentsMoveAlways};

} // namespace ortc::train
