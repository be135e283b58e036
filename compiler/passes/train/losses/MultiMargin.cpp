// The loss multi_margin: torch.nn.MultiMarginLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/ClassIndices.h"
#include "compiler/passes/train/losses/Margins.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kPower = "p";

static const char *contradict(const Settings &settings) {
  int64_t power = settings.getInteger(kPower);
  return power == 1 || power == 2 ? nullptr : "p must be 1 or 2";
}

/// The sum over the other classes of max(0, margin - x[y] + x[i])^p, over the number of classes.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  ClassLabels labels(operands);
  Value x = operands.prediction, zero = b.zerosLike(x);
  const int64_t axis = operands.axis;
  auto shape = nn::TensorBuilder::shapeOf(x);
  Value own = b.broadcastAlong(labels.pick(x), shape, {axis});
  Value excess = b.addScalar(b.sub(x, own), operands.settings.getNumber(kMargin));
  Value cost = b.select(labels.isClass, zero, clampAtZero(b, excess));
  if (operands.settings.getInteger(kPower) == 2)
    cost = b.mul(cost, cost);
  Value each = b.mean(cost, {axis});
  if (labels.factors)
    each = b.mul(each, labels.factors);
  return labels.reduce(each, /*sign=*/1, /*countsFactors=*/false);
}

const LossDefinition kMultiMarginLoss = {
    .name = "multi_margin",
    .meaning = "the mean over classes of max(0, margin - x[y] + x[i])^p for classes i other than the index y",
    .label = LabelKind::Classes,
    .keys = {axisKey(),
             ignoreIndexKey(),
             classWeightKey(),
             {kPower, int64_t(1), kWhole, "the power, 1 or 2"},
             {kMargin, 1.0, kNumber, "by how much the right class must be above others"}},
    .contradict = contradict,
    .build = build};

} // namespace ortc::train
