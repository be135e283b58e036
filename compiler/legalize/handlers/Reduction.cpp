// Reductions, arg reductions, running sums.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "dialects/onnx/InitializerOrigin.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;

namespace ortc::legalize::handlers {

namespace {

/// log(sum(exp(x))), with the largest element taken out of the exponent where it is finite.
Value logSumExp(TensorBuilder &b, Value x, Ints axes) {
  Value largest = b.reduce(nn::ReduceKind::max, x, axes);
  Value bound = b.constantLike(largest, std::numeric_limits<double>::infinity());
  Value isFinite = b.compare(arith::CmpFPredicate::OLT, b.abs(largest), bound);
  largest = b.select(isFinite, largest, b.zerosLike(largest));
  Value shifted = b.sub(x, b.broadcastAlong(largest, TensorBuilder::shapeOf(x), axes));
  return b.add(b.log(b.sum(b.exp(shifted), axes)), largest);
}

/// The extreme along an axis, whose gradient goes to the first of equal elements.
Value firstExtreme(TensorBuilder &b, Value x, int64_t axis, nn::ReduceKind kind) {
  Shape shape = nn::dropAxes(TensorBuilder::shapeOf(x), {axis}), kept(TensorBuilder::shapeOf(x));
  kept[axis] = 1;
  Value place =
      nn::ArgReduceOp::create(b, RankedTensorType::get(shape, b.getI64Type()), kind, x, axis, false);
  auto type = RankedTensorType::get(kept, TensorBuilder::elementOf(x));
  Value first = nn::GatherElementsOp::create(b, type, x, b.reshape(place, kept), axis);
  return nn::StraightThroughOp::create(b, b.reduce(kind, x, {axis}), b.reshape(first, shape));
}

/// The function of one operator, and its result for no elements.
struct Reduction {
  Value (*apply)(Node &n, Value x, Ints axes);
  std::optional<double> (*empty)(ElementType type);
  bool takesIntegers = true;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<double> nothing(ElementType) { return std::nullopt; }
std::optional<double> zero(ElementType) { return 0; }
std::optional<double> one(ElementType) { return 1; }
std::optional<double> minusInfinity(ElementType) { return -kInfinity; }

/// The least and greatest numbers of the type stand for infinity.
std::optional<double> leastOf(ElementType type) {
  if (type.isUnsigned || type.type.isInteger(1))
    return 0;
  auto integer = dyn_cast<IntegerType>(type.type);
  return integer ? -std::ldexp(1.0, static_cast<int>(integer.getWidth()) - 1) : -kInfinity;
}

std::optional<double> greatestOf(ElementType type) {
  auto integer = dyn_cast<IntegerType>(type.type);
  if (!integer)
    return kInfinity;
  if (integer.getWidth() == 1)
    return 1;
  if (type.isUnsigned)
    return -1; // all bits set
  if (integer.getWidth() == 64)
    return std::nullopt; // no double holds it
  return std::ldexp(1.0, static_cast<int>(integer.getWidth()) - 1) - 1;
}

/// For integers, the quotient of the sum.
Value meanOf(Node &n, Value x, Ints axes) {
  TensorBuilder &b = n.b;
  if (n.isFloat(0))
    return b.mean(x, axes);
  Value total = b.sum(x, axes);
  int64_t count = elementCount(TensorBuilder::shapeOf(x)) /
                  std::max<int64_t>(elementCount(TensorBuilder::shapeOf(total)), 1);
  Value divisor = b.constantLike(total, static_cast<double>(count));
  return n.isUnsigned(0) ? b.createOrFold<arith::DivUIOp>(total, divisor) : b.div(total, divisor);
}

template <nn::ReduceKind kind> Value extremeOf(Node &n, Value x, Ints axes) {
  TensorBuilder &b = n.b;
  if (n.isFloat(0) && n.ties() == onnx::kFirst && axes.size() == 1)
    return firstExtreme(b, x, axes.front(), kind);
  return n.isUnsigned(0) ? turnSign(b, b.reduce(kind, turnSign(b, x), axes)) : b.reduce(kind, x, axes);
}

LogicalResult reduce(Node &n, const Reduction &by) {
  SmallVector<int64_t> axes;
  bool given = false;
  if (failed(n.intsAt(1, "axes", axes, &given)) || failed(n.axes(axes, n.rank(0))))
    return failure();
  if (!n.isFloat(0) && !by.takesIntegers)
    return n.refuse("integers are not supported");
  if (axes.empty() && n.getInt("noop_with_empty_axes", 0)) {
    // The elementwise part stays: ReduceL1 of nothing is |x|.
    return n.yield(by.apply == meanOf ? n[0] : by.apply(n, n[0], {}));
  }
  if (axes.empty())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(0)));
  Shape kept(n.shape(0));
  for (int64_t axis : axes)
    kept[axis] = 1;
  Shape shape = n.getInt("keepdims", 1) ? kept : nn::dropAxes(n.shape(0), axes);
  if (elementCount(n.shape(0)) == 0) {
    std::optional<double> value = by.empty(n.typeOf(0));
    if (!value || (!n.isFloat(0) && !std::isfinite(*value)))
      return n.refuse("an input without elements");
    return n.yield(n.b.constant(RankedTensorType::get(shape, n.element(0)), *value));
  }
  return n.yield(n.b.reshape(by.apply(n, n[0], axes), shape));
}

LogicalResult argReduce(Node &n, nn::ReduceKind kind) {
  int64_t axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (n.shape(0)[axis] == 0)
    return n.refuse("axis " + Twine(axis) + " has no elements");
  TensorBuilder &b = n.b;
  Shape dropped = nn::dropAxes(n.shape(0), {axis}), kept(n.shape(0));
  kept[axis] = 1;
  Value result = nn::ArgReduceOp::create(b, RankedTensorType::get(dropped, b.getI64Type()), kind,
                                         n.isUnsigned(0) ? turnSign(b, n[0]) : n[0], axis,
                                         n.getInt("select_last_index", 0) != 0);
  return n.yieldAs(n.getInt("keepdims", 1) ? b.reshape(result, kept) : result, false);
}

} // namespace

LogicalResult reduceSum(Node &n) {
  return reduce(n, {[](Node &n, Value x, Ints axes) { return n.b.sum(x, axes); }, zero});
}

LogicalResult reduceMean(Node &n) { return reduce(n, {meanOf, nothing}); }

LogicalResult reduceProd(Node &n) {
  return reduce(n,
                {[](Node &n, Value x, Ints axes) { return n.b.reduce(nn::ReduceKind::prod, x, axes); }, one});
}

LogicalResult reduceMax(Node &n) { return reduce(n, {extremeOf<nn::ReduceKind::max>, leastOf}); }
LogicalResult reduceMin(Node &n) { return reduce(n, {extremeOf<nn::ReduceKind::min>, greatestOf}); }

LogicalResult reduceL1(Node &n) {
  return reduce(
      n, {[](Node &n, Value x, Ints axes) { return n.b.sum(n.isUnsigned(0) ? x : n.b.abs(x), axes); }, zero});
}

LogicalResult reduceL2(Node &n) {
  return reduce(n, {[](Node &n, Value x, Ints axes) { return rootOrZero(n.b, n.b.sum(n.b.mul(x, x), axes)); },
                    zero, /*takesIntegers=*/false});
}

LogicalResult reduceSumSquare(Node &n) {
  return reduce(n, {[](Node &n, Value x, Ints axes) { return n.b.sum(n.b.mul(x, x), axes); }, zero});
}

LogicalResult reduceLogSum(Node &n) {
  return reduce(n, {[](Node &n, Value x, Ints axes) { return n.b.log(n.b.sum(x, axes)); }, minusInfinity,
                    /*takesIntegers=*/false});
}

LogicalResult reduceLogSumExp(Node &n) {
  return reduce(n, {[](Node &n, Value x, Ints axes) { return logSumExp(n.b, x, axes); }, minusInfinity,
                    /*takesIntegers=*/false});
}

LogicalResult argMax(Node &n) { return argReduce(n, nn::ReduceKind::max); }
LogicalResult argMin(Node &n) { return argReduce(n, nn::ReduceKind::min); }

/// The axis of a running sum or product.
static LogicalResult runningAxis(Node &n, int64_t &axis) {
  SmallVector<int64_t> axes;
  if (failed(n.ints(1, "axis", axes)))
    return failure();
  if (axes.size() != 1)
    return n.refuse("its axis is no scalar");
  if (n.element(0).isInteger(1))
    return n.refuse("booleans cannot be summed or multiplied");
  axis = axes[0];
  return n.axis(axis, n.rank(0));
}

LogicalResult cumSum(Node &n) {
  int64_t axis;
  if (failed(runningAxis(n, axis)))
    return failure();
  bool exclusive = n.getInt("exclusive", 0), reverse = n.getInt("reverse", 0);
  return n.yield(nn::CumSumOp::create(n.b, n[0].getType(), n[0], axis, exclusive, reverse).getResult());
}

// Products of 1, 2, 4, ... elements: the gradient of an element is a sum of products of others, and nothing is divided.
LogicalResult cumProd(Node &n) {
  int64_t axis;
  if (failed(runningAxis(n, axis)))
    return failure();
  TensorBuilder &b = n.b;
  int64_t size = n.shape(0)[axis];
  bool reverse = n.getInt("reverse", 0);
  Value product = reverse ? b.reverse(n[0], {axis}) : n[0];
  auto delayed = [&](Value x, int64_t steps) {
    Shape ones(n.shape(0));
    ones[axis] = steps;
    Value start = b.constant(RankedTensorType::get(ones, n.element(0)), 1);
    return steps == size ? start : b.concat({start, b.sliceAxis(x, axis, 0, size - steps)}, axis);
  };
  if (n.getInt("exclusive", 0) && size > 0)
    product = delayed(product, 1);
  for (int64_t steps = 1; steps < size; steps *= 2)
    product = b.mul(product, delayed(product, steps));
  return n.yield(reverse ? b.reverse(product, {axis}) : product);
}

} // namespace ortc::legalize::handlers
