// Short words for building tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/TensorBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;

namespace ortc::nn {

static bool isFloat(Value value) { return isa<FloatType>(TensorBuilder::elementOf(value)); }

Value TensorBuilder::constant(RankedTensorType type, double value) {
  Type element = type.getElementType();
  TypedAttr attribute;
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    attribute = DenseElementsAttr::get(type, number);
  } else {
    // What 64 bits do not hold is the nearest number that they do.
    llvm::APSInt number(64, /*isUnsigned=*/false);
    bool isExact;
    APFloat(value).convertToInteger(number, APFloat::rmTowardZero, &isExact);
    attribute = DenseElementsAttr::get(type, number.sextOrTrunc(element.getIntOrFloatBitWidth()));
  }
  return arith::ConstantOp::create(*this, attribute);
}

Value TensorBuilder::differsFrom(Value x, int64_t value) {
  unsigned width = elementOf(x).getIntOrFloatBitWidth();
  if (!llvm::isIntN(width, value))
    return constant(RankedTensorType::get(shapeOf(x), getI1Type()), 1);
  auto number =
      DenseElementsAttr::get(typeOf(x), APInt(width, static_cast<uint64_t>(value), /*isSigned=*/true));
  return compare(arith::CmpIPredicate::ne, x, arith::ConstantOp::create(*this, number));
}

Value TensorBuilder::broadcast(Value x, Ints shape, Ints dimensions) {
  auto type = RankedTensorType::get(shape, elementOf(x));
  return type == x.getType() ? x : BroadcastOp::create(*this, type, x, dimensions).getResult();
}

Value TensorBuilder::broadcastTo(Value x, Ints shape) {
  auto dimensions = llvm::to_vector(llvm::seq<int64_t>(shape.size() - rankOf(x), shape.size()));
  return broadcast(x, shape, dimensions);
}

Value TensorBuilder::broadcastAlong(Value x, Ints shape, Ints axes) {
  SmallVector<int64_t> dimensions;
  for (int64_t i = 0, rank = shape.size(); i < rank; ++i)
    if (!llvm::is_contained(axes, i))
      dimensions.push_back(i);
  return broadcast(x, shape, dimensions);
}

Value TensorBuilder::reshape(Value x, Ints shape) {
  return createOrFold<ReshapeOp>(RankedTensorType::get(shape, elementOf(x)), x);
}

Value TensorBuilder::transpose(Value x, Ints permutation) {
  return createOrFold<TransposeOp>(RankedTensorType::get(permuteShape(shapeOf(x), permutation), elementOf(x)),
                                   x, permutation);
}

Value TensorBuilder::slice(Value x, Ints starts, Ints sizes, Ints strides) {
  SmallVector<int64_t> ones(starts.size(), 1);
  return createOrFold<SliceOp>(RankedTensorType::get(sizes, elementOf(x)), x, starts,
                               strides.empty() ? Ints(ones) : strides);
}

Value TensorBuilder::sliceAxis(Value x, int64_t axis, int64_t start, int64_t size) {
  SmallVector<int64_t> starts(rankOf(x), 0), sizes(shapeOf(x));
  starts[axis] = start;
  sizes[axis] = size;
  return slice(x, starts, sizes);
}

Value TensorBuilder::pad(Value x, Value value, Ints low, Ints high, Ints interior) {
  SmallVector<int64_t> none(low.size(), 0), shape;
  if (interior.empty())
    interior = none;
  for (auto [size, before, after, between] : llvm::zip_equal(shapeOf(x), low, high, interior))
    shape.push_back(before + after + size + std::max<int64_t>(size - 1, 0) * between);
  if (Ints(shape) == shapeOf(x))
    return x;
  return PadOp::create(*this, RankedTensorType::get(shape, elementOf(x)), x, value, low, high, interior);
}

Value TensorBuilder::padZeros(Value x, Ints low, Ints high, Ints interior) {
  return pad(x, scalar(elementOf(x), 0), low, high, interior);
}

Value TensorBuilder::concat(ValueRange inputs, int64_t axis) {
  Shape shape(shapeOf(inputs.front()));
  shape[axis] = 0;
  for (Value input : inputs)
    shape[axis] += shapeOf(input)[axis];
  return createOrFold<ConcatOp>(RankedTensorType::get(shape, elementOf(inputs.front())), inputs, axis);
}

Value TensorBuilder::reverse(Value x, Ints axes) { return ReverseOp::create(*this, x.getType(), x, axes); }

Value TensorBuilder::iota(RankedTensorType type, int64_t axis) { return IotaOp::create(*this, type, axis); }

Value TensorBuilder::reduce(ReduceKind kind, Value x, Ints axes, bool keepDims) {
  Shape kept(shapeOf(x));
  for (int64_t axis : axes)
    kept[axis] = 1;
  Shape shape = dropAxes(shapeOf(x), axes);
  Value result = createOrFold<ReduceOp>(RankedTensorType::get(shape, elementOf(x)), kind, x, axes);
  return keepDims ? reshape(result, kept) : result;
}

Value TensorBuilder::mean(Value x, Ints axes, bool keepDims) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= shapeOf(x)[axis];
  return mulScalar(sum(x, axes, keepDims), 1.0 / static_cast<double>(count));
}

std::pair<Value, Value> TensorBuilder::moments(Value x, Ints axes) {
  auto type = RankedTensorType::get(dropAxes(shapeOf(x), axes), elementOf(x));
  auto op = MomentsOp::create(*this, type, type, x, axes);
  return {op.getMean(), op.getVariance()};
}

Value TensorBuilder::softmax(Value x, int64_t axis) { return SoftmaxOp::create(*this, x.getType(), x, axis); }
Value TensorBuilder::logSoftmax(Value x, int64_t axis) {
  return LogSoftmaxOp::create(*this, x.getType(), x, axis);
}

Value TensorBuilder::dot(Value lhs, Value rhs, Ints lhsBatch, Ints rhsBatch, Ints lhsContract,
                         Ints rhsContract, bool exact) {
  Shape shape;
  for (int64_t dim : lhsBatch)
    shape.push_back(shapeOf(lhs)[dim]);
  for (int64_t dim : freeDimensions(rankOf(lhs), lhsBatch, lhsContract))
    shape.push_back(shapeOf(lhs)[dim]);
  for (int64_t dim : freeDimensions(rankOf(rhs), rhsBatch, rhsContract))
    shape.push_back(shapeOf(rhs)[dim]);
  auto type = RankedTensorType::get(shape, elementOf(lhs));
  if (llvm::any_of(lhsContract, [&](int64_t dim) { return shapeOf(lhs)[dim] == 0; }))
    return constant(type, 0); // a sum of nothing
  return DotOp::create(*this, type, lhs, rhs, lhsBatch, rhsBatch, lhsContract, rhsContract, exact);
}

Value TensorBuilder::matmul(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) {
  return dot(lhs, rhs, {}, {}, {transposeLhs ? 0 : 1}, {transposeRhs ? 1 : 0});
}

Value TensorBuilder::add(Value a, Value b) {
  return isFloat(a) ? createOrFold<arith::AddFOp>(a, b) : createOrFold<arith::AddIOp>(a, b);
}
Value TensorBuilder::sub(Value a, Value b) {
  return isFloat(a) ? createOrFold<arith::SubFOp>(a, b) : createOrFold<arith::SubIOp>(a, b);
}
Value TensorBuilder::mul(Value a, Value b) {
  return isFloat(a) ? createOrFold<arith::MulFOp>(a, b) : createOrFold<arith::MulIOp>(a, b);
}
Value TensorBuilder::div(Value a, Value b) {
  return isFloat(a) ? createOrFold<arith::DivFOp>(a, b) : createOrFold<arith::DivSIOp>(a, b);
}
Value TensorBuilder::neg(Value a) {
  return isFloat(a) ? createOrFold<arith::NegFOp>(a) : sub(zerosLike(a), a);
}

Value TensorBuilder::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return createOrFold<arith::CmpFOp>(predicate, a, b);
}
Value TensorBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return createOrFold<arith::CmpIOp>(predicate, a, b);
}
Value TensorBuilder::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}

// a > b or either is NaN picks a; a NaN in b is picked because no comparison with it is false under `ugt`
// unless a is compared first, so b's NaN needs its own test.
Value TensorBuilder::maximum(Value a, Value b) {
  if (!isFloat(a))
    return select(compare(arith::CmpIPredicate::sgt, a, b), a, b);
  Value larger = select(compare(arith::CmpFPredicate::UGT, a, b), a, b);
  return select(compare(arith::CmpFPredicate::UNO, b, b), b, larger);
}
Value TensorBuilder::minimum(Value a, Value b) {
  if (!isFloat(a))
    return select(compare(arith::CmpIPredicate::slt, a, b), a, b);
  Value smaller = select(compare(arith::CmpFPredicate::ULT, a, b), a, b);
  return select(compare(arith::CmpFPredicate::UNO, b, b), b, smaller);
}

Value TensorBuilder::exp(Value a) { return createOrFold<math::ExpOp>(a); }
Value TensorBuilder::log(Value a) { return createOrFold<math::LogOp>(a); }
Value TensorBuilder::sqrt(Value a) { return createOrFold<math::SqrtOp>(a); }
Value TensorBuilder::rsqrt(Value a) { return createOrFold<math::RsqrtOp>(a); }
Value TensorBuilder::tanh(Value a) { return createOrFold<math::TanhOp>(a); }
Value TensorBuilder::erf(Value a) { return createOrFold<math::ErfOp>(a); }
Value TensorBuilder::abs(Value a) {
  return isFloat(a) ? createOrFold<math::AbsFOp>(a) : createOrFold<math::AbsIOp>(a);
}
Value TensorBuilder::pow(Value a, Value b) { return createOrFold<math::PowFOp>(a, b); }
Value TensorBuilder::logicalNot(Value a) { return createOrFold<arith::XOrIOp>(a, constantLike(a, 1)); }
Value TensorBuilder::logicalAnd(Value a, Value b) { return createOrFold<arith::AndIOp>(a, b); }
Value TensorBuilder::logicalOr(Value a, Value b) { return createOrFold<arith::OrIOp>(a, b); }

Value TensorBuilder::tapPositions(Value taps, Ints input, Ints window, Ints strides, Ints low,
                                  Ints dilations) {
  bool isLarge = elementCount(input) > std::numeric_limits<int32_t>::max();
  Value rest = cast(taps, isLarge ? getI64Type() : getI32Type()), positions;
  int64_t stride = 1; // of the dimension, in the volume
  for (size_t d = window.size(); d-- > 0;) {
    Value size = constantLike(rest, static_cast<double>(window[d]));
    Value inside = d == 0 ? rest : arith::RemSIOp::create(*this, rest, size).getResult();
    Value start =
        addScalar(mulScalar(iota(typeOf(rest), static_cast<int64_t>(d) + 1), static_cast<double>(strides[d])),
                  static_cast<double>(-low[d]));
    Value at = mulScalar(add(start, mulScalar(inside, static_cast<double>(dilations[d]))),
                         static_cast<double>(stride));
    positions = positions ? add(positions, at) : at;
    rest = d == 0 ? rest : div(rest, size);
    stride *= input[d];
  }
  return positions;
}

Value TensorBuilder::cast(Value a, Type to, bool fromUnsigned, bool toUnsigned) {
  Type from = elementOf(a);
  if (from == to)
    return a;
  auto type = RankedTensorType::get(shapeOf(a), to);
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (to.isInteger(1))
    return fromFloat ? compare(arith::CmpFPredicate::UNE, a, zerosLike(a))
                     : compare(arith::CmpIPredicate::ne, a, zerosLike(a));
  if (from.isInteger(1))
    fromUnsigned = true;
  if (fromFloat && toFloat) {
    if (fromWidth < toWidth)
      return createOrFold<arith::ExtFOp>(type, a);
    if (fromWidth > toWidth)
      return createOrFold<arith::TruncFOp>(type, a);
    return cast(cast(a, getF32Type()), to); // f16 and bf16 meet in f32
  }
  if (fromFloat)
    return toUnsigned ? createOrFold<arith::FPToUIOp>(type, a) : createOrFold<arith::FPToSIOp>(type, a);
  if (toFloat)
    return fromUnsigned ? createOrFold<arith::UIToFPOp>(type, a) : createOrFold<arith::SIToFPOp>(type, a);
  if (fromWidth > toWidth)
    return createOrFold<arith::TruncIOp>(type, a);
  return fromUnsigned ? createOrFold<arith::ExtUIOp>(type, a) : createOrFold<arith::ExtSIOp>(type, a);
}

} // namespace ortc::nn
