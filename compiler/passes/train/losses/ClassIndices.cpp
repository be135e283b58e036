// Losses of class indices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/ClassIndices.h"

#include "compiler/passes/train/losses/FactorFiles.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

Key axisKey() { return {kAxis, int64_t(1), kWhole, "axis of the classes, negative ones from the end"}; }
Key ignoreIndexKey() { return {kIgnoreIndex, int64_t(-100), kWhole, "labels of this value take no part"}; }

Key classWeightKey() { return {kClassWeight, kNoFile, kFile, "a factor for every class"}; }

Value weighClasses(const LossOperands &operands, Value x) {
  TensorBuilder &b = operands.b;
  if (!operands.factors)
    return x;
  return b.mul(x, b.broadcast(operands.factors, TensorBuilder::shapeOf(x), {operands.axis}));
}

ClassLabels::ClassLabels(const LossOperands &operands) : operands(operands) {
  TensorBuilder &b = operands.b;
  Value label = operands.label;
  const int64_t axis = operands.axis, ignore = operands.settings.getInteger(kIgnoreIndex);
  auto shape = TensorBuilder::shapeOf(operands.prediction);
  Value checked = nn::CheckIndexOp::create(b, label.getType(), label, b.getStringAttr(operands.loss.label),
                                           b.getI64IntegerAttr(0), b.getI64IntegerAttr(shape[axis]),
                                           b.getI64IntegerAttr(ignore));
  counted = b.differsFrom(checked, ignore);
  // Compared in 32 bits, the width of the probabilities: a vector holds twice as many as in 64. What does not
  // fit is ignored, hence not counted.
  Value narrow =
      shape[axis] <= std::numeric_limits<int32_t>::max() ? b.cast(checked, b.getI32Type()) : checked;
  Value classes = b.iota(RankedTensorType::get(shape, TensorBuilder::elementOf(narrow)), axis);
  isClass = b.compare(arith::CmpIPredicate::eq, classes, b.broadcastAlong(narrow, shape, {axis}));
  if (!operands.factors)
    return;
  Value safe = b.select(counted, checked, b.zerosLike(checked));
  auto type =
      RankedTensorType::get(TensorBuilder::shapeOf(label), TensorBuilder::elementOf(operands.factors));
  factors = nn::GatherOp::create(b, type, operands.factors, safe, /*axis=*/0);
}

Value ClassLabels::pick(Value x) const {
  TensorBuilder &b = operands.b;
  return b.sum(b.select(isClass, x, b.zerosLike(x)), {operands.axis});
}

Value ClassLabels::reduce(Value each, double sign, bool countsFactors) const {
  TensorBuilder &b = operands.b;
  Value counts = counted;
  if (factors && countsFactors) {
    counts = b.select(counted, factors, b.zerosLike(factors));
    b.getInsertionBlock()->getParentOp()->setAttr(
        classWeightAttribute(operands.loss.label),
        operands.factors.getDefiningOp<arith::ConstantOp>().getValue());
  }
  return reduceTerms(operands,
                     {.each = b.select(counted, each, b.zerosLike(each)), .counts = counts, .sign = sign});
}

Value reduceOverClasses(const LossOperands &operands, Value logProbability, double smoothing) {
  TensorBuilder &b = operands.b;
  const int64_t axis = operands.axis;
  ClassLabels labels(operands);
  Value each = labels.pick(logProbability);
  if (labels.factors)
    each = b.mul(each, labels.factors);
  if (smoothing > 0) {
    auto classes = static_cast<double>(TensorBuilder::shapeOf(logProbability)[axis]);
    Value every = weighClasses(operands, logProbability);
    Value everyClass = b.mulScalar(b.sum(every, {axis}), smoothing / classes);
    each = b.add(b.mulScalar(each, 1 - smoothing), everyClass);
  }
  return labels.reduce(each, /*sign=*/-1, /*countsFactors=*/true);
}

} // namespace ortc::train
