// The loss huber: torch.nn.HuberLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kDelta = "delta";

/// d^2 / 2 where |d| < delta, delta (|d| - delta / 2) elsewhere.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  const double delta = operands.settings.getNumber(kDelta);
  Value difference = b.sub(operands.prediction, operands.label);
  Value size = b.abs(difference);
  Value isSmall = b.compare(arith::CmpFPredicate::OLT, size, b.constantLike(size, delta));
  Value square = b.mulScalar(b.mul(difference, difference), 0.5);
  Value line = b.mulScalar(b.addScalar(size, -0.5 * delta), delta);
  return reduceTerms(operands, {b.select(isSmall, square, line)});
}

const LossDefinition kHuberLoss = {
    .name = "huber",
    .meaning = "d^2 / 2 for differences d below delta, delta (d - delta / 2) for others",
    .keys = {{kDelta, 1.0, kPositive, "the difference from which on it is linear"}},
    .build = build,
    .comparands = Comparands::Values};

} // namespace ortc::train
