// The optimizer adamax: torch.optim.Adamax.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kLargest = "exp_inf";

/// g += weight_decay p; m += (g - m)(1 - beta1); u = max(beta2 u, |g| + epsilon); p -= lr / correction1 m / u.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  averageGradient(step);
  Value &u = step.states[kLargest];
  u = b.maximum(step.scale(u, step.scalar(kBeta2)),
                b.add(b.abs(step.gradient), spread(b, step.scalar(kEpsilon), u)));
  Value rate = b.neg(b.div(step.scalar(kLr), step.scalar(kCorrection1)));
  step.parameter = b.add(step.parameter, b.div(step.scale(step.states[kAverage], rate), u));
}

const OptimizerDefinition kAdamaxOptimizer = {
    .name = "adamax",
    .meaning = "averages of gradients divided by the largest gradient of late",
    .keys = momentKeys(2e-3, epsilonKey(1e-8, "added to the size of a gradient"), gradientDecayKey(),
                       {maximizeKey()}),
    .shared = {correctionState(kCorrection1, kBeta1)},
    .states = {{kAverage}, {kLargest}},
    .update = update,
    .movesAlways = momentsMoveAlways};

} // namespace ortc::train
