// The loss bce_with_logits: torch.nn.BCEWithLogitsLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

using namespace mlir;

namespace ortc::train {

/// softplus(x) - x y; with factors p of positive labels (1 - y) x + (1 + (p - 1) y) softplus(-x).
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value x = operands.prediction, y = operands.label;
  if (!operands.factors)
    return reduceTerms(operands, {binaryCrossEntropy(b, x, y)});
  Value more = b.addScalar(b.broadcastTo(operands.factors, nn::TensorBuilder::shapeOf(x)), -1);
  Value other = b.addScalar(b.neg(y), 1), factor = b.addScalar(b.mul(more, y), 1);
  return reduceTerms(operands, {b.add(b.mul(other, x), b.mul(factor, softplus(b, b.neg(x))))});
}

const LossDefinition kBceWithLogitsLoss = {
    .name = "bce_with_logits",
    .meaning = "binary cross entropies of logits and probabilities",
    .keys = {{kPosWeight, kNoFile, kFile,
              "factors of positive labels, of a shape that broadcasts to the logits'"}},
    .misfits = {{"Sigmoid", "bce_with_logits applies a sigmoid itself", nullptr}},
    .build = build,
    .comparands = Comparands::Decisions};

} // namespace ortc::train
