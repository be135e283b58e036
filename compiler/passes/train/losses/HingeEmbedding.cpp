// The loss hinge_embedding: torch.nn.HingeEmbeddingLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Margins.h"

using namespace mlir;

namespace ortc::train {

/// x for labels 1, max(0, margin - x) for labels -1, and both for others, as in PyTorch.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value x = operands.prediction, zero = b.zerosLike(x);
  auto isLabel = [&](double value) {
    return b.compare(arith::CmpFPredicate::OEQ, operands.label, b.constantLike(x, value));
  };
  Value apart = clampAtZero(b, b.addScalar(b.neg(x), operands.settings.getNumber(kMargin)));
  return reduceTerms(operands, {b.add(b.select(isLabel(1), zero, apart), b.select(isLabel(-1), zero, x))});
}

const LossDefinition kHingeEmbeddingLoss = {
    .name = "hinge_embedding",
    .meaning = "distances x where the label is 1, max(0, margin - x) where it is -1",
    .keys = {{kMargin, 1.0, kNumber, "the distance from which on labels -1 cost nothing"}},
    .build = build};

} // namespace ortc::train
