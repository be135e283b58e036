// Integers that stand for real numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// QuantizeLinear is trained through: its integers are the cast of a rounded floating-point value whose gradient is
// chosen by nn.straight_through. Integers end every gradient path, so DequantizeLinear looks for that
// floating-point value behind what only moves the integers, and moves it the same way.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Products.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

static double lowest(ElementType type) { return type.isUnsigned ? 0 : -std::ldexp(1.0, type.width() - 1); }
static double highest(ElementType type) {
  return std::ldexp(1.0, type.isUnsigned ? type.width() : type.width() - 1) - 1;
}

/// Rounds u to even, adds the zero point, keeps the result in the type's range. The gradient of u passes where
/// nothing was cut off.
static Value quantize(TensorBuilder &b, Value u, Value zeroPoint, ElementType to) {
  Value rounded = b.createOrFold<math::RoundEvenOp>(u);
  if (zeroPoint)
    rounded = b.add(rounded, zeroPoint);
  Value low = b.constantLike(u, lowest(to)), high = b.constantLike(u, highest(to));
  Value inside = b.logicalAnd(b.compare(arith::CmpFPredicate::OGE, rounded, low),
                              b.compare(arith::CmpFPredicate::OLE, rounded, high));
  Value value = clip(b, rounded, low, high);
  Value trained = nn::StraightThroughOp::create(b, value, b.select(inside, u, b.zerosLike(u)));
  return b.cast(trained, to.type, false, to.isUnsigned);
}

/// The floating-point value behind integers that `quantize` made, moved as they were; null when there is none.
static Value findTrained(TensorBuilder &b, Value x, bool isUnsigned, llvm::DenseMap<Value, Value> &known) {
  if (auto found = known.find(x); found != known.end())
    return found->second;
  Operation *op = x.getDefiningOp();
  if (isa_and_nonnull<arith::FPToSIOp, arith::FPToUIOp>(op) &&
      op->getOperand(0).getDefiningOp<nn::StraightThroughOp>())
    return known[x] = op->getOperand(0);
  if (!isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::PadOp, nn::ConcatOp,
                       nn::ReverseOp, nn::GatherOp, nn::GatherElementsOp, arith::SelectOp>(op))
    return known[x] = Value();
  Type integer = TensorBuilder::elementOf(x), floating;
  SmallVector<Value> operands(op->getOperands());
  SmallVector<bool> moves;
  for (Value &operand : operands) {
    moves.push_back(TensorBuilder::elementOf(operand) == integer);
    Value trained = moves.back() ? findTrained(b, operand, isUnsigned, known) : Value();
    if (!trained)
      continue;
    operand = trained;
    floating = TensorBuilder::elementOf(trained);
  }
  if (!floating)
    return known[x] = Value();
  for (auto [operand, isMoved] : llvm::zip_equal(operands, moves))
    if (isMoved)
      operand = b.cast(operand, floating, isUnsigned);
  OperationState state(b.getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(TensorBuilder::typeOf(x).clone(floating));
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return known[x] = b.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// QuantizeLinear, DequantizeLinear
//===----------------------------------------------------------------------===//

/// A scale or zero point under the shape of operand 0: one value, one for each place of `axis`, or one for each
/// block along it. `what` is operand `i` in the type to compute in.
static LogicalResult spread(Node &n, unsigned i, Value &what) {
  TensorBuilder &b = n.b;
  Shape x(n.shape(0)), given(n.shape(i));
  int64_t axis = n.getInt("axis", 1), block = n.getInt("block_size", 0), rank = n.rank(0);
  if (block < 0 || block > kMostElements)
    return n.refuse("a block_size of " + Twine(block));
  if (block == 0 && elementCount(given) == 1) {
    what = b.broadcastTo(b.reshape(what, {}), x);
    return success();
  }
  if (failed(n.axis(axis, rank)))
    return failure();
  auto doesNotFit = [&] {
    return n.refuse("operand " + Twine(i) + " of shape " + shapeText(given) +
                    " does not fit an input of shape " + shapeText(x));
  };
  if (block == 0) {
    if (given.size() != 1 || given[0] != x[axis])
      return doesNotFit();
    what = b.broadcast(what, x, {axis});
    return success();
  }
  Shape wanted = x;
  wanted[axis] = (x[axis] + block - 1) / block;
  if (given != wanted)
    return doesNotFit();
  // [..., blocks, block, ...], then one axis again, then what the last block has too much.
  Shape split = wanted, joined = wanted;
  split.insert(split.begin() + axis + 1, block);
  joined[axis] *= block;
  SmallVector<int64_t> dimensions;
  for (int64_t d = 0; d < rank; ++d)
    dimensions.push_back(d + (d > axis));
  what = b.sliceAxis(b.reshape(b.broadcast(what, split, dimensions), joined), axis, 0, x[axis]);
  return success();
}

/// f64 when an operand has it, else f32.
static Type computeType(Node &n) {
  bool isDouble = n.element(0).isF64() || n.element(1).isF64();
  return isDouble ? Type(n.b.getF64Type()) : Type(n.b.getF32Type());
}

/// The zero point, if there is one, in the type to compute in.
static LogicalResult readZeroPoint(Node &n, Type compute, Value &zeroPoint) {
  if (!n.has(2))
    return success();
  if (n.shape(2) != n.shape(1) && (elementCount(n.shape(1)) != 1 || elementCount(n.shape(2)) != 1))
    return n.refuse("a scale of shape " + shapeText(n.shape(1)) + " and a zero point of shape " +
                    shapeText(n.shape(2)));
  zeroPoint = n.b.cast(n[2], compute, n.isUnsigned(2));
  return spread(n, 2, zeroPoint);
}

LogicalResult quantizeLinear(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  TensorBuilder &b = n.b;
  int64_t wanted = n.getInt("output_dtype", 0), precision = n.getInt("precision", 0);
  ElementType to = n.elementType(wanted ? wanted : 2);
  if (n.has(2)) {
    ElementType zero = n.typeOf(2);
    if (wanted && (zero.type != to.type || zero.isUnsigned != to.isUnsigned || zero.lowBits != to.lowBits))
      return n.refuse("its output_dtype is not the type of its zero point");
    to = zero;
  }
  if (!to.type || !to.type.isIntOrIndex() || to.width() == 1 || to.width() > 16)
    return n.refuse("quantising to ONNX element type " + Twine(wanted) + " is not supported");
  if (!n.isFloat(1) || (!n.isFloat(0) && !n.element(0).isInteger(32)))
    return n.refuse("its input or its scale is not of a supported type");
  Type compute = computeType(n);
  Value x = b.cast(n[0], compute), scale = b.cast(n[1], compute), zeroPoint;
  if (failed(spread(n, 1, scale)) || failed(readZeroPoint(n, compute, zeroPoint)))
    return failure();
  Value u = b.div(x, b.detach(scale));
  // The quotient is rounded to `precision`, or to the operands' type when both are narrow.
  ElementType rounding = precision                      ? n.elementType(precision)
                         : n.element(0) == n.element(1) ? ElementType{n.element(0)}
                                                        : ElementType{compute};
  if (!rounding.type || !isa<FloatType>(rounding.type))
    return n.refuse("a precision of ONNX element type " + Twine(precision) + " is not supported");
  if (rounding.type.getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth())
    u = b.cast(b.cast(u, rounding.type), compute);
  return n.yieldAs(quantize(b, u, zeroPoint, to), to.isUnsigned, to.lowBits);
}

LogicalResult dequantizeLinear(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  TensorBuilder &b = n.b;
  int64_t wanted = n.getInt("output_dtype", 0);
  Type to = wanted ? n.elementType(wanted).type : n.element(1);
  if (!to || !isa<FloatType>(to) || n.isFloat(0) || !n.isFloat(1))
    return n.refuse("its input, scale or output is not of a supported type");
  Type compute = computeType(n);
  llvm::DenseMap<Value, Value> known;
  Value x = findTrained(b, n[0], n.isUnsigned(0), known), scale = b.cast(n[1], compute), zeroPoint;
  x = b.cast(x ? x : n[0], compute, n.isUnsigned(0));
  if (failed(spread(n, 1, scale)) || failed(readZeroPoint(n, compute, zeroPoint)))
    return failure();
  if (zeroPoint)
    x = b.sub(x, zeroPoint);
  return n.yield(b.cast(b.mul(x, scale), to));
}

/// To uint8 with the scale and zero point that take in zero and all of x.
LogicalResult dynamicQuantizeLinear(Node &n) {
  TensorBuilder &b = n.b;
  if (elementCount(n.shape(0)) == 0)
    return n.refuse("an input without elements");
  ElementType to = n.elementType(2);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(0)));
  Value highest = b.reduce(nn::ReduceKind::max, n[0], all), lowest = b.reduce(nn::ReduceKind::min, n[0], all);
  Value zero = b.zerosLike(highest);
  highest = b.maximum(highest, zero);
  lowest = b.minimum(lowest, zero);
  Value equal = b.compare(arith::CmpFPredicate::OEQ, highest, lowest);
  Value span = b.select(equal, b.constantLike(zero, 1), b.sub(highest, lowest));
  Value scale = b.detach(b.div(span, b.constantLike(zero, 255)));
  Value zeroPoint = clip(b, b.sub(zero, b.div(lowest, scale)), zero, b.constantLike(zero, 255));
  zeroPoint = b.createOrFold<math::RoundEvenOp>(zeroPoint);
  Ints shape = n.shape(0);
  Value y = quantize(b, b.div(n[0], b.broadcastTo(scale, shape)), b.broadcastTo(zeroPoint, shape), to);
  return n.yieldBound({{y, true}, {scale}, {b.cast(zeroPoint, to.type, false, true), true}});
}

//===----------------------------------------------------------------------===//
// Products of integers
//===----------------------------------------------------------------------===//

/// A floating-point type in which sums of `terms` products of centred 8-bit integers, and `more`, are exact.
static Type exactType(TensorBuilder &b, int64_t terms, int64_t more = 0) {
  constexpr int64_t most = int64_t(1) << 24, product = 255 * 255;
  return more <= most && terms <= (most - more) / product ? Type(b.getF32Type()) : Type(b.getF64Type());
}

/// The largest magnitude of operand i, of int32.
static int64_t largest(Node &n, unsigned i) {
  const HostTensor *values = n.constant(i);
  int64_t magnitude = values ? 0 : int64_t(1) << 31;
  for (int64_t k = 0; values && k < values->size(); ++k)
    magnitude = std::max(magnitude, std::abs(values->getInt(k)));
  return magnitude;
}

/// Operand i under `shape`: a scalar, a vector along `axis`, or anything that broadcasts.
static LogicalResult along(Node &n, unsigned i, Ints shape, int64_t axis, Value &value) {
  Shape given(n.shape(i)), wide;
  if (elementCount(given) == 1)
    value = n.b.reshape(value, {});
  else if (given.size() == 1 && axis >= 0 && given[0] == shape[axis])
    return value = n.b.broadcast(value, shape, {axis}), success();
  if (failed(n.broadcastShape({value, n.b.constant(RankedTensorType::get(shape, n.b.getI1Type()), 0)}, wide)))
    return failure();
  if (Ints(wide) != shape)
    return n.refuse("operand " + Twine(i) + " of shape " + shapeText(given) + " does not fit " +
                    shapeText(shape));
  value = n.b.broadcastTo(value, shape);
  return success();
}

/// Operand i minus its zero point (operand `zero`, along `axis` when it is a vector).
static LogicalResult centre(Node &n, unsigned i, unsigned zero, int64_t axis, Type type, Value &value) {
  if (n.isFloat(i) || n.element(i).getIntOrFloatBitWidth() != 8)
    return n.refuse("operand " + Twine(i) + " is not of 8-bit integers");
  value = n.b.cast(n[i], type, n.isUnsigned(i));
  if (!n.has(zero))
    return success();
  Value offset = n.b.cast(n[zero], type, n.isUnsigned(zero));
  if (failed(along(n, zero, n.shape(i), axis, offset)))
    return failure();
  value = n.b.sub(value, offset);
  return success();
}

/// The product of operands `a` and `c`, exact, in a floating-point type.
static Value integerMatMul(Node &n, unsigned a, unsigned aZero, unsigned c, unsigned cZero) {
  Value lhs, rhs;
  Type type = exactType(n.b, n.rank(a) ? n.shape(a).back() : 1);
  if (failed(centre(n, a, aZero, n.rank(a) - 2, type, lhs)) ||
      failed(centre(n, c, cZero, n.rank(c) - 1, type, rhs)))
    return {};
  return multiply(n, lhs, rhs);
}

/// The convolution of operands `x` and `w`, exact, in a floating-point type; operand `bias`, if there is one, is added
/// behind it, in a wider type where that is needed.
static Value integerConv(Node &n, unsigned x, unsigned xZero, unsigned w, unsigned wZero, unsigned bias) {
  Value input, filter;
  int64_t terms = elementCount(n.shape(w).drop_front(n.rank(w) ? 1 : 0));
  Type type = exactType(n.b, terms);
  if (failed(centre(n, x, xZero, -1, type, input)) || failed(centre(n, w, wZero, 0, type, filter)))
    return {};
  Value y = convolve(n, input, filter, Value());
  if (!y || !n.has(bias))
    return y;
  Ints shape = TensorBuilder::shapeOf(y), given = n.shape(bias);
  if (given.size() != 1 || given[0] != shape[1]) {
    (void)n.refuse("a bias of shape " + shapeText(given) + " for " + Twine(shape[1]) + " filters");
    return {};
  }
  Type wide = exactType(n.b, terms, largest(n, bias));
  return n.b.add(n.b.cast(y, wide), n.b.broadcast(n.b.cast(n[bias], wide), shape, {1}));
}

/// As int32, with wrapping where it overflows.
static Value toInt32(TensorBuilder &b, Value x) { return b.cast(b.cast(x, b.getI64Type()), b.getI32Type()); }

LogicalResult matMulInteger(Node &n) {
  Value y = integerMatMul(n, 0, 2, 1, 3);
  return y ? n.yieldAs(toInt32(n.b, y), false) : failure();
}

LogicalResult convInteger(Node &n) {
  Value y = integerConv(n, 0, 2, 1, 3, /*bias=*/4);
  return y ? n.yieldAs(toInt32(n.b, y), false) : failure();
}

/// Operand `i`, one number or a vector along `axis`, as a vector along `only`; null where it is none.
static Value asVector(Node &n, unsigned i, int64_t axis, int64_t only, int64_t size) {
  if (elementCount(n.shape(i)) == 1)
    return n.b.broadcastTo(n.b.reshape(n[i], {}), {size});
  return axis == only && n.rank(i) == 1 && n.shape(i)[0] == size ? n[i] : Value();
}

/// The exact product `y` times xScale wScale / yScale, quantised; vectors of scales run along an axis of y. In f32
/// behind the product, with the roundings of onnxruntime: its codes are ours, and processors without f64 need none.
static LogicalResult requantize(Node &n, Value y, std::pair<unsigned, int64_t> xScale,
                                std::pair<unsigned, int64_t> wScale, std::pair<unsigned, int64_t> yScale,
                                unsigned yZero) {
  TensorBuilder &b = n.b;
  Shape shape(TensorBuilder::shapeOf(y));
  Type type = b.getF32Type();
  Value scales[3], factor;
  for (auto [slot, operand] :
       llvm::zip_equal(scales, SmallVector<std::pair<unsigned, int64_t>>{xScale, wScale, yScale})) {
    slot = n[operand.first];
    if (!n.isFloat(operand.first))
      return n.refuse("a scale is not floating-point");
  }
  // Numbers and vectors along one axis give a vector, which is found while compiling where they are constant.
  int64_t axis = wScale.second;
  if (axis >= 0 && axis < static_cast<int64_t>(shape.size())) {
    Value x = asVector(n, xScale.first, xScale.second, axis, shape[axis]),
          w = asVector(n, wScale.first, wScale.second, axis, shape[axis]),
          into = asVector(n, yScale.first, yScale.second, axis, shape[axis]);
    if (x && w && into)
      factor = b.broadcast(b.cast(b.div(b.mul(x, w), into), type), shape, {axis});
  }
  if (!factor) {
    for (auto [slot, operand] :
         llvm::zip_equal(scales, SmallVector<std::pair<unsigned, int64_t>>{xScale, wScale, yScale}))
      if (failed(along(n, operand.first, shape, operand.second, slot)))
        return failure();
    factor = b.cast(b.div(b.mul(scales[0], scales[1]), scales[2]), type);
  }
  if (n.isFloat(yZero) || n.element(yZero).getIntOrFloatBitWidth() != 8)
    return n.refuse("its result is not of 8-bit integers");
  ElementType to = n.typeOf(yZero);
  Value zeroPoint = b.cast(n[yZero], type, to.isUnsigned);
  if (failed(along(n, yZero, shape, yScale.second, zeroPoint)))
    return failure();
  Value result = quantize(b, b.mul(b.cast(y, type), factor), zeroPoint, to);
  return n.yieldAs(result, to.isUnsigned, to.lowBits);
}

LogicalResult qLinearMatMul(Node &n) {
  Value y = integerMatMul(n, 0, 2, 3, 5);
  if (!y)
    return failure();
  int64_t rank = TensorBuilder::rankOf(y);
  return requantize(n, y, {1, rank - 2}, {4, rank - 1}, {6, rank - 2}, 7);
}

LogicalResult qLinearConv(Node &n) {
  if (n.has(8) && !n.element(8).isInteger(32))
    return n.refuse("its bias is not of int32");
  Value y = integerConv(n, 0, 2, 3, 5, 8);
  if (!y)
    return failure();
  return requantize(n, y, {1, -1}, {4, 1}, {6, -1}, 7);
}

} // namespace ortc::legalize::handlers
