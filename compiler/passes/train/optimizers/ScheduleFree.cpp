// What schedule-free optimizers share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/ScheduleFree.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kWarmup = "warmup_steps", *kPower = "r", *kLrPower = "weight_lr_power";
static constexpr const char *kLargestLr = "lr_max", *kWeights = "weight_sum", *kDistance = "z_minus_x";

/// lr min(1, t / warmup_steps)
static Value rateOf(ScalarStep &step) {
  nn::TensorBuilder &b = step.b;
  Value lr = step.scalar(kLr), warmup = step.scalar(kWarmup);
  if (!warmup)
    return lr;
  Value share = b.div(step.scalar(kUpdates), warmup);
  return b.mul(lr, b.minimum(share, b.constantLike(share, 1)));
}

/// t^r lr_max^weight_lr_power
static Value weightOf(ScalarStep &step) {
  nn::TensorBuilder &b = step.b;
  Value weight = b.pow(step.scalar(kLargestLr), step.scalar(kLrPower));
  if (Value r = step.scalar(kPower))
    weight = b.mul(weight, b.exp(b.mul(r, b.log(step.scalar(kUpdates)))));
  return weight;
}

static Value advanceLr(ScalarStep &step, const SharedState &, Value old) {
  return step.b.maximum(old, rateOf(step));
}

static Value advanceWeights(ScalarStep &step, const SharedState &, Value old) {
  return step.b.add(old, weightOf(step));
}

std::vector<Key> averagingKeys() {
  return {
      {kWarmup, 0.0, kNotNegative, "steps in which lr grows to its value", /*zeroIsAbsent=*/true},
      {kPower, 0.0, kNotNegative, "power of the step that weighs it in the average", /*zeroIsAbsent=*/true},
      {kLrPower, 2.0, kNotNegative, "power of the largest lr so far that weighs a step"}};
}

std::vector<SharedState> averagingShared(std::vector<SharedState> more) {
  std::vector<SharedState> all = {countState(),
                                  {kLargestLr, {kLr, kWarmup}, advanceLr},
                                  {kWeights, {kLr, kWarmup, kPower, kLrPower}, advanceWeights}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<StateDefinition> averagingStates(std::vector<StateDefinition> more) {
  more.insert(more.begin(), {.name = kDistance, .ahead = "z"});
  return more;
}

Value readAhead(UpdateStep &step, const char *key) {
  nn::TensorBuilder &b = step.b;
  if (step.holdsAhead)
    return step.parameter;
  return b.add(step.parameter, step.scale(step.states[kDistance], oneMinus(b, step.scalar(key))));
}

/// The same of y and z, where x is left out: y += c (z - y) - lr w (1 - key (1 - c)) direction; z -= lr w direction.
static void averageAhead(UpdateStep &step, const char *key, Value share, Value direction) {
  nn::TensorBuilder &b = step.b;
  Value &z = step.states[kDistance], rate = b.neg(rateOf(step));
  Value ofStep = oneMinus(b, b.mul(step.scalar(key), oneMinus(b, share)));
  Value moved = b.add(step.parameter, step.scale(b.sub(z, step.parameter), share));
  step.parameter = b.add(moved, step.scale(direction, b.mul(rate, ofStep)));
  z = b.add(z, step.scale(direction, rate));
}

void averageStep(UpdateStep &step, const char *key, Value direction) {
  nn::TensorBuilder &b = step.b;
  Value sum = step.scalar(kWeights), zero = b.zerosLike(sum);
  Value share = b.select(b.compare(arith::CmpFPredicate::OEQ, sum, zero), zero, b.div(weightOf(step), sum));
  if (step.holdsAhead)
    return averageAhead(step, key, share, direction);
  Value &distance = step.states[kDistance];
  Value moved = b.sub(distance, step.scale(direction, rateOf(step)));
  step.parameter = b.add(step.parameter, step.scale(moved, share));
  distance = step.scale(moved, oneMinus(b, share));
}

} // namespace ortc::train
