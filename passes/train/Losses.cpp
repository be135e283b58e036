// Losses as tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each is written such that its gradient, too, is exact at special points: where a formula has two branches,
// every part of it takes the same one.
#include "passes/train/Losses.h"

#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static bool takesClasses(const LossSpec &loss) {
  return (loss.kind == LossKind::CrossEntropy && !loss.probabilities) || loss.kind == LossKind::Nll;
}

bool needsLabel(const LossSpec &loss) { return loss.kind != LossKind::Output && loss.kind != LossKind::None; }

/// The class axis: PyTorch's default 1 is 0 for a single sample.
static FailureOr<int64_t> findClassAxis(const LossSpec &loss, RankedTensorType type, Location loc) {
  int64_t rank = type.getRank(), axis = loss.axis < 0 ? loss.axis + rank : loss.axis;
  if (rank == 1 && loss.axis == 1)
    axis = 0;
  if (axis < 0 || axis >= rank)
    return emitError(loc) << "loss " << getLossName(loss.kind) << ": axis " << loss.axis
                          << " is outside the output's " << rank << " dimensions";
  return axis;
}

/// Floating point of at least f32.
static Type computeType(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}

FailureOr<RankedTensorType> inferLabelType(const LossSpec &loss, RankedTensorType prediction, Location loc) {
  if (!takesClasses(loss))
    return RankedTensorType::get(prediction.getShape(), computeType(prediction.getElementType()));
  FailureOr<int64_t> axis = findClassAxis(loss, prediction, loc);
  if (failed(axis))
    return failure();
  return RankedTensorType::get(nn::dropAxes(prediction.getShape(), {*axis}),
                               IntegerType::get(loc.getContext(), 64));
}

static SmallVector<int64_t> allAxes(Value x) {
  return llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(x)));
}

/// The mean of -logProbability at the class indices, over labels that are not ignored; with `smoothing` s, of
/// -(1 - s) times that minus s / C times the sum over all classes. No label at all gives NaN, as 0 / 0 does.
static Value averageOverClasses(TensorBuilder &b, Value logProbability, Value label, int64_t axis,
                                int64_t ignore, double smoothing) {
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
  Value total = b.sum(b.select(counted, each, b.zerosLike(each)), allAxes(each));
  Value count = b.sum(b.cast(counted, element), allAxes(counted));
  return b.neg(b.div(total, count));
}

/// The mean over samples of -sum(target * logProbability), targets smoothed.
static Value averageOverTargets(TensorBuilder &b, Value logProbability, Value target, int64_t axis,
                                double smoothing) {
  double classes = static_cast<double>(TensorBuilder::shapeOf(logProbability)[axis]);
  if (smoothing > 0)
    target = b.addScalar(b.mulScalar(target, 1 - smoothing), smoothing / classes);
  Value total = b.sum(b.mul(target, logProbability), allAxes(logProbability));
  double samples = static_cast<double>(TensorBuilder::typeOf(logProbability).getNumElements()) / classes;
  return b.mulScalar(total, -1 / samples);
}

static Value meanOf(TensorBuilder &b, Value x) { return b.mean(x, allAxes(x)); }

/// d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere.
static Value smoothError(TensorBuilder &b, Value difference, double beta) {
  Value size = b.abs(difference);
  Value isSmall = b.compare(arith::CmpFPredicate::OLT, size, b.constantLike(size, beta));
  Value square = b.mulScalar(b.mul(difference, difference), 0.5 / beta);
  return b.select(isSmall, square, b.addScalar(size, -0.5 * beta));
}

/// max(x, 0) - x y + log(1 + exp(-|x|)). Zero belongs to the positive branch in both parts, so that the
/// gradient there is 1/2 - y.
static Value binaryCrossEntropy(TensorBuilder &b, Value x, Value y) {
  Value zero = b.zerosLike(x), positive = b.compare(arith::CmpFPredicate::OGE, x, zero);
  Value decay = b.exp(b.select(positive, b.neg(x), x));
  Value rest = b.createOrFold<math::Log1pOp>(decay);
  return b.add(b.sub(b.select(positive, x, zero), b.mul(x, y)), rest);
}

/// The label as the loss computes with it, or an error.
static FailureOr<Value> prepareLabel(TensorBuilder &b, const LossSpec &loss, Value label,
                                     RankedTensorType expected) {
  auto type = TensorBuilder::typeOf(label);
  bool bothInteger = isa<IntegerType>(type.getElementType()) && isa<IntegerType>(expected.getElementType());
  bool bothFloat = isa<FloatType>(type.getElementType()) && isa<FloatType>(expected.getElementType());
  if (type.getShape() != expected.getShape() || !(bothInteger || bothFloat))
    return emitError(b.getLoc()) << "the label has type " << type << " but loss " << getLossName(loss.kind)
                                 << " needs " << expected;
  if (type.getElementType().isInteger(32))
    return label; // an index type, too
  return b.cast(label, expected.getElementType());
}

FailureOr<Value> buildLossValue(TensorBuilder &b, const LossSpec &loss, Value prediction, Value label) {
  if (!isa<FloatType>(TensorBuilder::elementOf(prediction)))
    return emitError(b.getLoc()) << "a loss needs a floating-point output, not " << prediction.getType();
  Value x = b.cast(prediction, computeType(TensorBuilder::elementOf(prediction)));
  if (loss.kind == LossKind::Output) {
    if (TensorBuilder::typeOf(x).getNumElements() != 1)
      return emitError(b.getLoc()) << "output '" << loss.output << "' of type " << prediction.getType()
                                   << " cannot be the loss: a loss has one element";
    return b.reshape(x, {});
  }
  FailureOr<RankedTensorType> labelType = inferLabelType(loss, TensorBuilder::typeOf(x), b.getLoc());
  if (failed(labelType))
    return failure();
  FailureOr<Value> prepared = prepareLabel(b, loss, label, *labelType);
  if (failed(prepared))
    return failure();
  Value y = *prepared;
  int64_t axis = 0;
  if (loss.kind == LossKind::CrossEntropy || loss.kind == LossKind::Nll) {
    FailureOr<int64_t> found = findClassAxis(loss, TensorBuilder::typeOf(x), b.getLoc());
    if (failed(found))
      return failure();
    axis = *found;
  }
  switch (loss.kind) {
  case LossKind::CrossEntropy:
    return loss.probabilities
               ? averageOverTargets(b, b.logSoftmax(x, axis), y, axis, loss.labelSmoothing)
               : averageOverClasses(b, b.logSoftmax(x, axis), y, axis, loss.ignoreIndex, loss.labelSmoothing);
  case LossKind::Nll:
    return averageOverClasses(b, x, y, axis, loss.ignoreIndex, 0);
  case LossKind::Mse: {
    Value difference = b.sub(x, y);
    return meanOf(b, b.mul(difference, difference));
  }
  case LossKind::L1:
    return meanOf(b, b.abs(b.sub(x, y)));
  case LossKind::SmoothL1:
    return meanOf(b, smoothError(b, b.sub(x, y), loss.beta));
  case LossKind::BceWithLogits:
    return meanOf(b, binaryCrossEntropy(b, x, y));
  case LossKind::Output:
  case LossKind::None:
    break;
  }
  llvm_unreachable("losses without a formula are handled before");
}

} // namespace ortc::train
