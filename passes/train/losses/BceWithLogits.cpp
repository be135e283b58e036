// The loss bce_with_logits: torch.nn.BCEWithLogitsLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Losses.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

/// max(x, 0) - x y + log(1 + exp(-|x|)). Zero belongs to the positive branch in both parts, so that the
/// gradient there is 1/2 - y.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value x = operands.prediction, y = operands.label;
  Value zero = b.zerosLike(x), positive = b.compare(arith::CmpFPredicate::OGE, x, zero);
  Value decay = b.exp(b.select(positive, b.neg(x), x));
  Value rest = b.createOrFold<math::Log1pOp>(decay);
  return averageAll(b, b.add(b.sub(b.select(positive, x, zero), b.mul(x, y)), rest));
}

const LossDefinition kBceWithLogitsLoss = {
    .name = "bce_with_logits",
    .meaning = "the mean of binary cross entropies of logits and probabilities",
    .misfits = {{"Sigmoid", "bce_with_logits applies a sigmoid itself", nullptr}},
    .build = build};

} // namespace ortc::train
