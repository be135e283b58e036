// The optimizer adagrad: torch.optim.Adagrad.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kEpsilon = "epsilon", *kSum = "sum", *kLrDecay = "lr_decay",
                            *kFirst = "initial_accumulator_value";

static bool decaysRate(const Settings &settings) { return settings.getNumber(kLrDecay) != 0; }

/// g += weight_decay p; s += g g; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(first + s) + epsilon). The state is s
/// without what PyTorch's begins with, so that it is zeros at first.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value &sum = step.states[kSum];
  sum = b.add(sum, b.mul(step.gradient, step.gradient));
  Value all = sum, rate = step.scalar(kLr);
  if (Value first = step.scalar(kFirst))
    all = b.add(sum, spread(b, first, sum));
  if (Value decay = step.scalar(kLrDecay)) {
    Value before = b.addScalar(step.scalar(kUpdates), -1);
    rate = b.div(rate, b.addScalar(b.mul(before, decay), 1));
  }
  Value divisor = b.add(b.sqrt(all), spread(b, step.scalar(kEpsilon), sum));
  step.parameter = b.add(step.parameter, b.div(step.scale(step.gradient, b.neg(rate)), divisor));
}

const OptimizerDefinition kAdagradOptimizer = {
    .name = "adagrad",
    .meaning = "gradients divided by the root of the sum of their squares so far",
    .keys =
        {lrKey(1e-2),
         epsilonKey(1e-10),
         gradientDecayKey(),
         {kLrDecay,
          0.0,
          kNotNegative,
          "lr is divided by 1 + that times the steps before",
          /*zeroIsAbsent=*/true,
          {},
          /*isRare=*/true},
         {kFirst, 0.0, kNotNegative, "what the sum begins with", /*zeroIsAbsent=*/true, {}, /*isRare=*/true},
         maximizeKey()},
    .shared = {countState(decaysRate)},
    .states = {{kSum}},
    .update = update};

} // namespace ortc::train
