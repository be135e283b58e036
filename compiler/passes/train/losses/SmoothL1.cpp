// The loss smooth_l1: torch.nn.SmoothL1Loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kBeta = "beta";

/// d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  const double beta = operands.settings.getNumber(kBeta);
  Value difference = b.sub(operands.prediction, operands.label);
  Value size = b.abs(difference);
  Value isSmall = b.compare(arith::CmpFPredicate::OLT, size, b.constantLike(size, beta));
  Value square = b.mulScalar(b.mul(difference, difference), 0.5 / beta);
  return reduceTerms(operands, {b.select(isSmall, square, b.addScalar(size, -0.5 * beta))});
}

const LossDefinition kSmoothL1Loss = {
    .name = "smooth_l1",
    .meaning = "d^2 / (2 beta) for differences d below beta, d - beta / 2 for others",
    .keys = {{kBeta, 1.0, kPositive, "the difference from which on it is linear"}},
    .build = build,
    .comparands = Comparands::Values};

} // namespace ortc::train
