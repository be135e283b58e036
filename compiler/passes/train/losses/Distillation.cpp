// The loss distillation: torch.nn.KLDivLoss, "batchmean", of softened probabilities (Hinton et al., 2015).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kTemperature = "temperature", *kDim = "dim";

/// T^2 times the sum of p (log p - log q), where q and p are softmax(student / T) and softmax(teacher / T), divided by
/// the leading dimension. No gradient reaches the teacher.
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  const double temperature = operands.settings.getNumber(kTemperature);
  const int64_t rank = TensorBuilder::rankOf(operands.prediction), dim = operands.settings.getInteger(kDim);
  auto soften = [&](Value logits) {
    return b.logSoftmax(b.mulScalar(logits, 1 / temperature), dim < 0 ? dim + rank : std::min(dim, rank - 1));
  };
  Value student = soften(operands.predictions[0]), teacher = soften(b.detach(operands.predictions[1]));
  Value probability = b.exp(teacher), zeros = b.zerosLike(probability);
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, probability, zeros); // 0 log 0 is 0
  Value each = b.sub(b.mul(probability, b.select(isZero, zeros, teacher)), b.mul(probability, student));
  auto shape = TensorBuilder::shapeOf(each);
  return reduceTerms(operands, {.each = b.mulScalar(each, temperature * temperature),
                                .size = TensorBuilder::typeOf(each).getNumElements() / shape.front()});
}

static const char *misshape(const Settings &, RankedTensorType prediction) {
  return prediction.getRank() < 2 ? "it needs [samples, classes], and may have more axes" : nullptr;
}

const LossDefinition kDistillationLoss = {
    .name = "distillation",
    .meaning =
        "T^2 times the divergence of softmax(student / T) from softmax(teacher / T), a mean over the leading "
        "axis; no label, and no gradient of the teacher",
    .predictions = {"STUDENT", "TEACHER"},
    .label = LabelKind::None,
    .keys = {{kTemperature, 1.0, kPositive, "divides the logits of both"},
             {kDim, int64_t(-1), kWhole, "axis of the classes, negative ones from the end"}},
    .build = build,
    .misshape = misshape};

} // namespace ortc::train
