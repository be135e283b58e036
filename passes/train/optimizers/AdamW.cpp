// The optimizer adamw: torch.optim.AdamW.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

/// p *= 1 - lr weight_decay, then the step of adam.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  if (Value decay = step.scalar(kWeightDecay))
    step.parameter = step.scale(step.parameter, oneMinus(b, b.mul(step.scalar(kLr), decay)));
  updateByMoments(step);
}

const OptimizerDefinition kAdamWOptimizer = {
    .name = "adamw",
    .meaning = "adam with a weight decay of its own",
    .keys = momentKeys(1e-2, "share of the parameter that a step takes off, times lr"),
    .corrections = momentCorrections(),
    .states = momentStates(),
    .update = update};

} // namespace ortc::train
