// What optimizers with averages of gradients and of their squares share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kBeta1 = "beta1", *kBeta2 = "beta2", *kEpsilon = "epsilon";
static constexpr const char *kCorrection1 = "bias_correction1", *kCorrection2 = "bias_correction2";
static constexpr const char *kAverage = "exp_avg", *kAverageSquare = "exp_avg_sq";

std::vector<Key> momentKeys(double weightDecay, const char *decayMeaning) {
  return {lrKey(1e-3), betaKey(kBeta1, 0.9, "factor of the average of gradients"),
          betaKey(kBeta2, 0.999, "factor of the average of their squares"), epsilonKey(),
          weightDecayKey(weightDecay, decayMeaning)};
}

std::vector<Correction> momentCorrections() { return {{kCorrection1, kBeta1}, {kCorrection2, kBeta2}}; }

std::vector<StateDefinition> momentStates() { return {{kAverage}, {kAverageSquare}}; }

void updateByMoments(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  Value gradient = step.gradient, lr = step.scalar(kLr);
  Value &m = step.states[kAverage], &v = step.states[kAverageSquare];
  m = b.add(m, step.scale(b.sub(gradient, m), oneMinus(b, step.scalar(kBeta1))));
  Value square = b.mul(step.scale(gradient, oneMinus(b, step.scalar(kBeta2))), gradient);
  v = b.add(step.scale(v, step.scalar(kBeta2)), square);

  Value one = b.constantLike(lr, 1);
  Value inverseRoot = b.div(one, b.sqrt(step.scalar(kCorrection2)));
  Value rate = b.neg(b.div(lr, step.scalar(kCorrection1)));
  Value denominator = b.sqrt(v);
  if (step.isSparse)
    rate = b.div(rate, inverseRoot);
  else
    denominator = step.scale(denominator, inverseRoot);
  denominator = b.add(denominator, spread(b, step.scalar(kEpsilon), v));
  step.parameter = b.add(step.parameter, b.div(step.scale(m, rate), denominator));
}

} // namespace ortc::train
