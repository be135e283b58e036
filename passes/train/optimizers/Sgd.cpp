// The optimizer sgd: torch.optim.SGD.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kMomentum = "momentum", *kBuffer = "momentum_buffer", *kNesterov = "nesterov";

static bool hasMomentum(const Settings &settings) { return settings.getNumber(kMomentum) != 0; }

static const char *contradict(const Settings &settings) {
  return settings.isOn(kNesterov) && !hasMomentum(settings) ? "nesterov needs a momentum above 0" : nullptr;
}

static const char *movesAlways(const Settings &settings) {
  return hasMomentum(settings) ? "momentum" : nullptr;
}

/// g += weight_decay p; v = momentum v + g; p -= lr v (with nesterov: lr (g + momentum v)). v is zeros at first:
/// PyTorch's first step, v = g, is the same.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value direction = step.gradient;
  if (Value momentum = step.scalar(kMomentum)) {
    Value &buffer = step.states[kBuffer];
    buffer = b.add(step.scale(buffer, momentum), step.gradient);
    direction = step.settings.isOn(kNesterov) ? b.add(step.gradient, step.scale(buffer, momentum)) : buffer;
  }
  step.parameter = b.add(step.parameter, step.scale(direction, b.neg(step.scalar(kLr))));
}

const OptimizerDefinition kSgdOptimizer = {
    .name = "sgd",
    .meaning = "gradient descent, with momentum where it is not 0",
    .keys = {lrKey(1e-3),
             momentumKey(),
             weightDecayKey(0, "added to the gradient, times the parameter"),
             {kNesterov, false, kSwitch, "the step looks ahead, with a momentum only"}},
    .contradict = contradict,
    .states = {{kBuffer, hasMomentum}},
    .update = update,
    .movesAlways = movesAlways};

} // namespace ortc::train
