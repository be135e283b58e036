// What optimizers with the momentum of sgd share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Momentum.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kMomentum = "momentum", *kBuffer = "momentum_buffer", *kNesterov = "nesterov",
                            *kDampening = "dampening";

static bool hasMomentum(const Settings &settings) { return settings.getNumber(kMomentum) != 0; }
static bool isDamped(const Settings &settings) {
  return hasMomentum(settings) && settings.getNumber(kDampening) != 0;
}

std::vector<Key> directionKeys(double lr) {
  return {lrKey(lr),
          momentumKey(),
          gradientDecayKey(),
          {kNesterov, false, kSwitch, "the step looks ahead, with a momentum only"},
          {kDampening,
           0.0,
           kShare,
           "share of the gradient that momentum leaves out",
           /*zeroIsAbsent=*/true,
           {},
           /*isRare=*/true}};
}

const char *contradictDirection(const Settings &settings) {
  if (!settings.isOn(kNesterov))
    return nullptr;
  return !hasMomentum(settings) ? "nesterov needs a momentum above 0"
         : isDamped(settings)   ? "nesterov needs a dampening of 0"
                                : nullptr;
}

std::vector<SharedState> directionShared() { return {countState(isDamped)}; }

std::vector<StateDefinition> directionStates() { return {{kBuffer, hasMomentum}}; }

const char *directionMovesAlways(const Settings &settings) {
  return hasMomentum(settings) ? "momentum" : nullptr;
}

// The buffer is zeros at first: PyTorch's first step, v = g, is the same.
Value directionOf(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  Value momentum = step.scalar(kMomentum), gradient = step.gradient;
  if (!momentum)
    return gradient;
  if (Value dampening = step.scalar(kDampening)) {
    Value one = b.constantLike(dampening, 1);
    Value isFirst = b.compare(arith::CmpFPredicate::OLE, step.scalar(kUpdates), one);
    gradient = step.scale(gradient, b.select(isFirst, one, oneMinus(b, dampening)));
  }
  Value &buffer = step.states[kBuffer];
  buffer = b.add(step.scale(buffer, momentum), gradient);
  return step.settings.isOn(kNesterov) ? b.add(step.gradient, step.scale(buffer, momentum)) : buffer;
}

} // namespace ortc::train
