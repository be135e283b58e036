// What optimizers with averages of gradients and of their squares share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kAmsgrad = "amsgrad", *kLargest = "max_exp_avg_sq", *kHat = "epsilon_hat";

std::vector<Key> momentKeys(double lr, Key epsilon, Key decay, std::vector<Key> more) {
  std::vector<Key> all = {lrKey(lr), betaKey(kBeta1, 0.9, "factor of the average of gradients"),
                          betaKey(kBeta2, 0.999, "factor of the average of their squares"),
                          std::move(epsilon), std::move(decay)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<SharedState> momentCorrections() {
  return {correctionState(kCorrection1, kBeta1), correctionState(kCorrection2, kBeta2)};
}

std::vector<StateDefinition> momentStates() { return {{kAverage}, {kAverageSquare}}; }

const char *momentsMoveAlways(const Settings &) { return "the average of gradients"; }

void averageGradient(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  Value &m = step.states[kAverage];
  m = b.add(m, step.scale(b.sub(step.gradient, m), oneMinus(b, step.scalar(kBeta1))));
}

void averageSquare(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  Value &v = step.states[kAverageSquare];
  Value square = b.mul(step.scale(step.gradient, oneMinus(b, step.scalar(kBeta2))), step.gradient);
  v = b.add(step.scale(v, step.scalar(kBeta2)), square);
}

void averageMoments(UpdateStep &step) {
  averageGradient(step);
  averageSquare(step);
}

Value correctedDivisor(UpdateStep &step, Value v) {
  nn::TensorBuilder &b = step.b;
  Value correction = step.scalar(kCorrection2);
  Value inverseRoot = b.div(b.constantLike(correction, 1), b.sqrt(correction));
  return b.add(step.scale(b.sqrt(v), inverseRoot), spread(b, step.scalar(kEpsilon), v));
}

void decayAsSwitched(UpdateStep &step) {
  if (step.settings.isOn(kDecoupled))
    step.decayParameter();
  else
    step.decayGradient();
}

static bool isAmsgrad(const Settings &settings) { return settings.has(kAmsgrad) && settings.isOn(kAmsgrad); }

Key amsgradKey() { return switchKey(kAmsgrad, "divides by the largest average of squares so far"); }
StateDefinition amsgradState() { return {kLargest, isAmsgrad}; }
Key epsilonHatKey() {
  return switchKey(kHat, "epsilon is added before the correction of the bias, as Keras and scikit-learn do");
}

void updateByMoments(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  averageMoments(step);
  Value lr = step.scalar(kLr), v = step.states[kAverageSquare];
  if (isAmsgrad(step.settings)) {
    Value &largest = step.states[kLargest];
    v = largest = b.maximum(largest, v);
  }
  Value rate = b.neg(b.div(lr, step.scalar(kCorrection1))), divisor;
  if (step.isSparse || (step.settings.has(kHat) && step.settings.isOn(kHat))) {
    Value correction = step.scalar(kCorrection2);
    rate = b.div(rate, b.div(b.constantLike(correction, 1), b.sqrt(correction)));
    divisor = b.add(b.sqrt(v), spread(b, step.scalar(kEpsilon), v));
  } else {
    divisor = correctedDivisor(step, v);
  }
  step.parameter = b.add(step.parameter, b.div(step.scale(step.states[kAverage], rate), divisor));
}

} // namespace ortc::train
