// The optimizer adagrad: torch.optim.Adagrad.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kEpsilon = "epsilon", *kSum = "sum";

/// g += weight_decay p; s += g g; p -= lr g / (sqrt(s) + epsilon).
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value &sum = step.states[kSum];
  sum = b.add(sum, b.mul(step.gradient, step.gradient));
  Value divisor = b.add(b.sqrt(sum), spread(b, step.scalar(kEpsilon), sum));
  step.parameter = b.add(step.parameter, b.div(step.scale(step.gradient, b.neg(step.scalar(kLr))), divisor));
}

const OptimizerDefinition kAdagradOptimizer = {
    .name = "adagrad",
    .meaning = "gradients divided by the root of the sum of their squares so far",
    .keys = {lrKey(1e-2),
             {kEpsilon, 1e-10, kNotNegative, "added to the divisor"},
             weightDecayKey(0, "added to the gradient, times the parameter")},
    .states = {{kSum}},
    .update = update};

} // namespace ortc::train
