// Averages of parameters over the updates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn or its default, the mean; the warm-up of the decay is
// that of timm.utils.ModelEmaV3. State begins at zero, and a share of 1 makes the first value the average.
#include "compiler/passes/train/Averages.h"

#include "compiler/passes/train/Channels.h"
#include "compiler/passes/train/Optimizers.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static FailureOr<Port> getCountState(const char *kind, ProgramTensors &tensors, TensorBuilder &b) {
  return tensors.getState((Twine(kind) + ".n_averaged").str(), RankedTensorType::get({}, b.getI64Type()));
}

FailureOr<Averages> Averages::ema(const EmaSpec &spec, ProgramTensors &tensors, TensorBuilder &b) {
  FailureOr<Port> count = getCountState("ema", tensors, b);
  FailureOr<Value> decay = tensors.getScalar("ema_decay", spec.decay);
  if (failed(count) || failed(decay))
    return failure();
  Value next = b.add(count->value, b.constantLike(count->value, 1));
  Value share = oneMinus(b, *decay), done = b.cast(count->value, b.getF64Type());
  if (spec.warmsUp) { // which has a share of 1 at first
    Value grown = b.addScalar(b.mulScalar(done, 1 / spec.gamma), 1);
    share = b.maximum(share, b.pow(grown, b.constantLike(grown, -spec.power)));
  }
  Value isFirst = b.compare(arith::CmpFPredicate::OLT, done, b.constantLike(done, 0.5));
  share = b.select(isFirst, b.constantLike(share, 1), share);
  return Averages("ema", {count->attribute, next}, count->value, share);
}

FailureOr<Averages> Averages::swa(const SwaSpec &spec, Value updates, ProgramTensors &tensors,
                                  TensorBuilder &b) {
  FailureOr<Port> count = getCountState("swa", tensors, b);
  if (failed(count))
    return failure();
  // Updates since the start, this one left out: whole numbers, which a double holds.
  Value since = b.addScalar(b.cast(updates, b.getF64Type()), -double(spec.start)),
        half = b.constantLike(since, 0.5);
  Value turns = b.createOrFold<math::FloorOp>(b.mulScalar(b.add(since, half), 1 / double(spec.every)));
  Value over = b.sub(since, b.mulScalar(turns, double(spec.every)));
  Value isDue = b.logicalAnd(b.compare(arith::CmpFPredicate::OGT, since, b.neg(half)),
                             b.compare(arith::CmpFPredicate::OLT, over, half));
  Value next = b.add(count->value, b.constantLike(count->value, 1));
  Value inverse = b.div(b.constantLike(since, 1), b.cast(next, b.getF64Type()));
  return Averages("swa", {count->attribute, b.select(isDue, next, count->value)}, count->value,
                  b.select(isDue, inverse, b.zerosLike(inverse)));
}

FailureOr<std::pair<Port, Value>> Averages::move(TensorOp parameter, Value value, ProgramTensors &tensors,
                                                 TensorBuilder &b) const {
  FailureOr<Port> average =
      tensors.getState(kind, parameter, trainedType(parameter).clone(TensorBuilder::elementOf(value)));
  if (failed(average))
    return failure();
  Value before = average->value;
  Value moved = b.add(before, b.mul(b.sub(value, before), spread(b, share, value)));
  return std::pair(Port{average->attribute, moved}, before);
}

} // namespace ortc::train
