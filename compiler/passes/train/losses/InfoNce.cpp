// The loss info_nce: van den Oord et al. with cosine similarities, as in SimCLR and MoCo.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kTemperature = "temperature";

static const char *misshape(const Settings &, RankedTensorType prediction) {
  return prediction.getRank() != 2 ? "it needs [samples, features]" : nullptr;
}

/// Rows of length 1, as torch.nn.functional.normalize makes them: x / max(|x|, 1e-12).
static Value normalize(TensorBuilder &b, Value x) {
  static constexpr double kLeast = 1e-12;
  Value square = b.sum(b.mul(x, x), {1}, /*keepDims=*/true);
  Value isTiny = b.compare(arith::CmpFPredicate::OLT, square, b.constantLike(square, kLeast * kLeast));
  Value length = b.sqrt(b.select(isTiny, b.constantLike(square, 1), square));
  length = b.select(isTiny, b.constantLike(square, kLeast), length);
  return b.div(x, b.broadcastTo(length, TensorBuilder::shapeOf(x)));
}

/// Cross entropies of the similarities of a row with all labels, over the temperature; its own label is the class.
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  Value scores = b.matmul(normalize(b, operands.prediction), normalize(b, operands.label), false, true);
  scores = b.mulScalar(scores, 1 / operands.settings.getNumber(kTemperature));
  Value logProbability = b.logSoftmax(scores, 1);
  auto places = RankedTensorType::get(TensorBuilder::shapeOf(scores), b.getI32Type());
  Value isOwn = b.compare(arith::CmpIPredicate::eq, b.iota(places, 0), b.iota(places, 1));
  Value own = b.sum(b.select(isOwn, logProbability, b.zerosLike(logProbability)), {1});
  return reduceTerms(operands, {.each = own, .sign = -1});
}

const LossDefinition kInfoNceLoss = {.name = "info_nce",
                                     .meaning = "cross entropies of cosines between an embedding and the "
                                                "labels of all samples, over the temperature; the "
                                                "label of its own sample is the right one",
                                     .keys = {{kTemperature, 0.1, kPositive, "what cosines are divided by"}},
                                     .build = build,
                                     .misshape = misshape,
                                     .comparesSamples = true};

} // namespace ortc::train
