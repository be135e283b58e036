// The optimizer lamb (arXiv:1904.00962): timm.optim.Lamb, that of apex, without its clipping, which is --clip-norm.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"
#include "compiler/passes/train/optimizers/TrustRatio.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kAveraging = "grad_averaging";

/// With m and v of adam: u = m / correction1 / (sqrt(v / correction2) + epsilon) + weight_decay p; p -= lr |p| / |u| u.
/// Where there is no weight decay, the ratio of norms is 1 unless always_adapt is on.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  if (step.settings.isOn(kAveraging))
    averageGradient(step);
  else
    step.states[kAverage] = b.add(step.scale(step.states[kAverage], step.scalar(kBeta1)), step.gradient);
  averageSquare(step);
  Value lr = step.scalar(kLr), one = b.constantLike(lr, 1);
  Value divisor = correctedDivisor(step, step.states[kAverageSquare]);
  Value direction = b.div(step.scale(step.states[kAverage], b.div(one, step.scalar(kCorrection1))), divisor);
  if (Value decay = step.scalar(kWeightDecay))
    direction = b.add(direction, step.scale(step.parameter, decay));
  Value rate = b.neg(lr);
  if (adapts(step)) {
    Value ofParameter = normOf(b, step.parameter), ofDirection = normOf(b, direction);
    Value ratio = guardRatio(b, b.div(ofParameter, ofDirection), ofParameter, ofDirection);
    rate = b.mul(rate, isClipped(step.settings) ? b.minimum(ratio, one) : ratio);
  }
  step.parameter = b.add(step.parameter, step.scale(direction, rate));
}

const OptimizerDefinition kLambOptimizer = {
    .name = "lamb",
    .meaning = "steps of adam, each of the size of its parameter",
    .keys = momentKeys(1e-3, epsilonKey(1e-6),
                       weightDecayKey(1e-2, "added to the direction, times the parameter"),
                       {trustClipKey(),
                        alwaysAdaptKey(),
                        {kAveraging,
                         true,
                         kSwitch,
                         "a gradient weighs 1 - beta1 in the average; 0: 1",
                         /*zeroIsAbsent=*/false,
                         {},
                         /*isRare=*/true},
                        maximizeKey()}),
    .shared = momentCorrections(),
    .states = momentStates(),
    .update = update,
    .movesAlways = momentsMoveAlways,
    .spans = "the norm of the parameter"};

} // namespace ortc::train
