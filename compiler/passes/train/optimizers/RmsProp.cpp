// The optimizer rmsprop: torch.optim.RMSprop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kAlpha = "alpha", *kEpsilon = "epsilon", *kMomentum = "momentum",
                            *kCentered = "centered";
static constexpr const char *kSquare = "square_avg", *kBuffer = "momentum_buffer", *kAverage = "grad_avg";

static bool hasMomentum(const Settings &settings) { return settings.getNumber(kMomentum) != 0; }
static bool isCentered(const Settings &settings) { return settings.isOn(kCentered); }

static const char *movesAlways(const Settings &) { return "the average of squares"; }

/// g += weight_decay p; v = alpha v + (1 - alpha) g g; centered: m += (g - m)(1 - alpha) and v - m m for v below.
/// d = g / (sqrt(v) + epsilon); with a momentum: d = momentum d' + d; p -= lr d.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value gradient = step.gradient, rest = oneMinus(b, step.scalar(kAlpha));
  Value &v = step.states[kSquare];
  v = b.add(step.scale(v, step.scalar(kAlpha)), b.mul(step.scale(gradient, rest), gradient));
  Value variance = v;
  if (isCentered(step.settings)) {
    Value &m = step.states[kAverage];
    m = b.add(m, step.scale(b.sub(gradient, m), rest));
    // Rounding may leave less than zero of equal gradients, where PyTorch's root is NaN.
    variance = b.maximum(b.sub(v, b.mul(m, m)), b.zerosLike(v));
  }
  Value divisor = b.add(b.sqrt(variance), spread(b, step.scalar(kEpsilon), v));
  Value direction = b.div(gradient, divisor);
  if (Value momentum = step.scalar(kMomentum)) {
    Value &buffer = step.states[kBuffer];
    buffer = b.add(step.scale(buffer, momentum), direction);
    direction = buffer;
  }
  step.parameter = b.add(step.parameter, step.scale(direction, b.neg(step.scalar(kLr))));
}

const OptimizerDefinition kRmsPropOptimizer = {
    .name = "rmsprop",
    .meaning = "gradients divided by the root of the average of their squares",
    .keys = {lrKey(1e-2),
             betaKey(kAlpha, 0.99, "factor of the average of squares"),
             epsilonKey(),
             gradientDecayKey(),
             momentumKey(),
             {kCentered, false, kSwitch, "divides by an estimate of the standard deviation"},
             maximizeKey()},
    .states = {{kSquare}, {kBuffer, hasMomentum}, {kAverage, isCentered}},
    .update = update,
    .movesAlways = movesAlways};

} // namespace ortc::train
