// Losses of class indices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/losses/ClassIndices.h"

#include "dialects/train/TrainDialect.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

Key axisKey() { return {kAxis, int64_t(1), kWhole, "axis of the classes, negative ones from the end"}; }
Key ignoreIndexKey() { return {kIgnoreIndex, int64_t(-100), kWhole, "labels of this value take no part"}; }

Value averageOverClasses(const LossOperands &operands, Value logProbability, double smoothing) {
  TensorBuilder &b = operands.b;
  Value label = operands.label;
  const int64_t axis = operands.axis, ignore = operands.settings.getInteger(kIgnoreIndex);
  auto shape = TensorBuilder::shapeOf(logProbability);
  Type element = TensorBuilder::elementOf(logProbability);
  Value checked =
      nn::CheckIndexOp::create(b, label.getType(), label, b.getStringAttr(kLabel), b.getI64IntegerAttr(0),
                               b.getI64IntegerAttr(shape[axis]), b.getI64IntegerAttr(ignore));
  Value counted = b.differsFrom(checked, ignore);
  // Compared in 32 bits, the width of the probabilities: a vector holds twice as many as in 64. What does not
  // fit is ignored, hence not counted.
  Value narrow =
      shape[axis] <= std::numeric_limits<int32_t>::max() ? b.cast(checked, b.getI32Type()) : checked;
  Value classes = b.iota(RankedTensorType::get(shape, TensorBuilder::elementOf(narrow)), axis);
  Value isClass = b.compare(arith::CmpIPredicate::eq, classes, b.broadcastAlong(narrow, shape, {axis}));
  Value zeros = b.zerosLike(logProbability);
  Value each = b.sum(b.select(isClass, logProbability, zeros), {axis});
  if (smoothing > 0) {
    Value everyClass =
        b.mulScalar(b.sum(logProbability, {axis}), smoothing / static_cast<double>(shape[axis]));
    each = b.add(b.mulScalar(each, 1 - smoothing), everyClass);
  }
  Value total = sumAll(b, b.select(counted, each, b.zerosLike(each)));
  Value count = sumAll(b, b.cast(counted, element));
  return b.neg(b.div(total, count));
}

} // namespace ortc::train
