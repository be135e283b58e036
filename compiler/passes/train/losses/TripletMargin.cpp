// The loss triplet_margin: torch.nn.TripletMarginLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/Margins.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kPower = "p", *kEps = "eps", *kSwap = "swap";

/// The p-norm of x - y + eps along the last axis. A norm of zero has no gradient.
static Value measureDistance(const LossOperands &operands, Value x, Value y) {
  TensorBuilder &b = operands.b;
  const double p = operands.settings.getNumber(kPower);
  Value difference = b.addScalar(b.sub(x, y), operands.settings.getNumber(kEps));
  const int64_t last = TensorBuilder::rankOf(difference) - 1;
  auto isZero = [&](Value value) { return b.compare(arith::CmpFPredicate::OEQ, value, b.zerosLike(value)); };
  // f(value), where value is not zero.
  auto awayFromZero = [&](Value value, auto f) {
    Value zero = isZero(value);
    return b.select(zero, b.zerosLike(value), f(b.select(zero, b.constantLike(value, 1), value)));
  };
  auto power = [&](Value value, double exponent) { return b.pow(value, b.constantLike(value, exponent)); };
  if (p == 1)
    return b.sum(b.abs(difference), {last});
  if (p == 2)
    return awayFromZero(b.sum(b.mul(difference, difference), {last}), [&](Value sum) { return b.sqrt(sum); });
  Value powers = awayFromZero(b.abs(difference), [&](Value size) { return power(size, p); });
  return awayFromZero(b.sum(powers, {last}), [&](Value sum) { return power(sum, 1 / p); });
}

/// The smaller one; where both are equal, each has half of the gradient.
static Value takeSmaller(TensorBuilder &b, Value x, Value y) {
  Value smaller = b.select(b.compare(arith::CmpFPredicate::OLT, x, y), x, y);
  Value middle = b.mulScalar(b.add(x, y), 0.5);
  return b.select(b.compare(arith::CmpFPredicate::OEQ, x, y), middle, smaller);
}

/// max(0, margin + d(anchor, positive) - d(anchor, negative)); with swap, of the negative's distances from both.
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  Value anchor = operands.predictions[0], positive = operands.predictions[1],
        negative = operands.predictions[2];
  Value near = measureDistance(operands, anchor, positive), far = measureDistance(operands, anchor, negative);
  if (operands.settings.isOn(kSwap))
    far = takeSmaller(b, far, measureDistance(operands, positive, negative));
  Value margin = b.constantLike(near, operands.settings.getNumber(kMargin));
  return reduceTerms(operands, {clampAtZero(b, b.sub(b.add(margin, near), far))});
}

const LossDefinition kTripletMarginLoss = {
    .name = "triplet_margin",
    .meaning = "max(0, margin + distance(anchor, positive) - distance(anchor, negative)); no label",
    .predictions = {"ANCHOR", "POSITIVE", "NEGATIVE"},
    .label = LabelKind::None,
    .keys = {{kMargin, 1.0, kPositive, "how much farther the negative output must be"},
             {kPower, 2.0, kPositive, "of the norm that is the distance"},
             {kEps, 1e-6, kNotNegative, "is added to differences"},
             {kSwap, false, kSwitch,
              "the negative's distance is the smaller one of those from the two others"}},
    .fits = areVectors,
    .build = build};

} // namespace ortc::train
