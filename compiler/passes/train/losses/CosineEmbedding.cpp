// The loss cosine_embedding: torch.nn.CosineEmbeddingLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/Margins.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

/// 1 - cos of the last axis for labels of 1, what cos has above the margin for labels of -1, else 0.
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  constexpr double kEpsilon = 1e-12F; // PyTorch's, which is a float
  auto sumRows = [&](Value a, Value c) { return b.sum(b.mul(a, c), {TensorBuilder::rankOf(a) - 1}); };
  Value x = operands.predictions[0], y = operands.predictions[1], label = operands.label;
  Value squares = b.mul(b.addScalar(sumRows(x, x), kEpsilon), b.addScalar(sumRows(y, y), kEpsilon));
  Value cosine = b.div(sumRows(x, y), b.sqrt(squares)), zeros = b.zerosLike(cosine);
  Value apart = clampAtZero(b, b.addScalar(cosine, -operands.settings.getNumber(kMargin)));
  Value alike = b.sub(b.constantLike(cosine, 1), cosine);
  auto isLabel = [&](double value) {
    return b.compare(arith::CmpFPredicate::OEQ, label, b.constantLike(label, value));
  };
  return reduceTerms(operands, {b.select(isLabel(1), alike, b.select(isLabel(-1), apart, zeros))});
}

const LossDefinition kCosineEmbeddingLoss = {
    .name = "cosine_embedding",
    .meaning = "1 - cos of two outputs for labels of 1, max(0, cos - margin) for labels of -1",
    .predictions = {"INPUT1", "INPUT2"},
    .label = LabelKind::Rows,
    .keys = {{kMargin, 0.0, kNumber, "the cosine from which on different samples cost"}},
    .fits = areVectors,
    .build = build};

} // namespace ortc::train
