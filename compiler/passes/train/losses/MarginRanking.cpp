// The loss margin_ranking: torch.nn.MarginRankingLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/Margins.h"

using namespace mlir;

namespace ortc::train {

/// max(0, -y (x1 - x2) + margin).
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value difference = b.sub(operands.predictions[0], operands.predictions[1]);
  Value each = b.addScalar(b.mul(b.neg(operands.label), difference), operands.settings.getNumber(kMargin));
  return reduceTerms(operands, {clampAtZero(b, each)});
}

const LossDefinition kMarginRankingLoss = {
    .name = "margin_ranking",
    .meaning = "max(0, margin - y (x1 - x2)): labels of 1 rank the first output higher, of -1 the second",
    .predictions = {"INPUT1", "INPUT2"},
    .keys = {{kMargin, 0.0, kNumber, "the difference that costs nothing"}},
    .build = build};

} // namespace ortc::train
