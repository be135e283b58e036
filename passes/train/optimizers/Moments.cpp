// What optimizers with averages of gradients and of their squares share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kAmsgrad = "amsgrad", *kLargest = "max_exp_avg_sq";

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

void averageMoments(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  averageGradient(step);
  Value &v = step.states[kAverageSquare];
  Value square = b.mul(step.scale(step.gradient, oneMinus(b, step.scalar(kBeta2))), step.gradient);
  v = b.add(step.scale(v, step.scalar(kBeta2)), square);
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

void updateByMoments(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  averageMoments(step);
  Value lr = step.scalar(kLr), v = step.states[kAverageSquare];
  if (isAmsgrad(step.settings)) {
    Value &largest = step.states[kLargest];
    v = largest = b.maximum(largest, v);
  }
  Value one = b.constantLike(lr, 1);
  Value inverseRoot = b.div(one, b.sqrt(step.scalar(kCorrection2)));
  Value rate = b.neg(b.div(lr, step.scalar(kCorrection1)));
  Value denominator = b.sqrt(v);
  if (step.isSparse)
    rate = b.div(rate, inverseRoot);
  else
    denominator = step.scale(denominator, inverseRoot);
  denominator = b.add(denominator, spread(b, step.scalar(kEpsilon), v));
  step.parameter = b.add(step.parameter, b.div(step.scale(step.states[kAverage], rate), denominator));
}

} // namespace ortc::train
