// Reading a grid at places that data decide.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/handlers/Taps.h"

#include "compiler/legalize/Formulas.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace ortc::legalize {

Type indexType(TensorBuilder &b, int64_t count) {
  return count > std::numeric_limits<int32_t>::max() ? b.getI64Type() : b.getI32Type();
}

static Value floorOf(TensorBuilder &b, Value x) { return math::FloorOp::create(b, x); }

/// Mirrored at `low` and at `low + span` until it lies between them.
static Value reflect(TensorBuilder &b, Value x, double low, double span) {
  Value shifted = b.addScalar(x, -low);
  Value isBelow = b.compare(arith::CmpFPredicate::OLT, shifted, b.zerosLike(x));
  Value distance = b.select(isBelow, b.neg(shifted), shifted);
  Value length = b.constantLike(x, span);
  Value rest = arith::RemFOp::create(b, distance, length);
  Value flips = floorOf(b, b.div(distance, length));
  Value pairs = b.mulScalar(floorOf(b, b.mulScalar(flips, 0.5)), 2);
  Value isEven = b.compare(arith::CmpFPredicate::OEQ, flips, pairs);
  return b.select(isEven, b.addScalar(rest, low), b.sub(b.constantLike(x, span + low), rest));
}

/// A coordinate moved into the grid of `size` elements by border or reflection; with gradient.
static Value padCoordinate(TensorBuilder &b, Value x, int64_t size, Padding padding) {
  double last = static_cast<double>(size) - 1;
  if (padding == Padding::zeros)
    return x;
  if (padding == Padding::reflectElements)
    x = size == 1 ? b.zerosLike(x) : reflect(b, x, 0, last);
  else if (padding == Padding::reflectEdges)
    x = reflect(b, x, -0.5, static_cast<double>(size));
  return clip(b, x, b.zerosLike(x), b.constantLike(x, last));
}

Taps wholeTaps(TensorBuilder &b, Value x, int64_t size, Padding padding, Type index) {
  Taps taps;
  Value last = b.constantLike(x, static_cast<double>(size) - 1), zero = b.zerosLike(x);
  if (padding == Padding::zeros)
    taps.inside = b.logicalAnd(b.compare(arith::CmpFPredicate::OGE, x, zero),
                               b.compare(arith::CmpFPredicate::OLE, x, last));
  else
    x = padCoordinate(b, x, size, padding);
  // A coordinate that is no number is cast to 0.
  taps.index = b.cast(clip(b, x, zero, last), index);
  return taps;
}

/// Coefficients of the weights as polynomials of the distance to the element before: one row per power, one
/// column per tap.
static ArrayRef<double> polynomials(Interpolation kind) {
  static constexpr double a = -0.75;
  static constexpr double linear[] = {1, 0, /**/ -1, 1};
  static constexpr double cubic[] = {0,      1,        0,         0, //
                                     a,      0,        -a,        0, //
                                     -2 * a, -(a + 3), 2 * a + 3, a, //
                                     a,      a + 2,    -(a + 2),  -a};
  return kind == Interpolation::linear ? ArrayRef<double>(linear) : ArrayRef<double>(cubic);
}

Taps tapsAround(Node &n, Value x, int64_t size, Interpolation kind, Padding padding, Type index) {
  TensorBuilder &b = n.b;
  if (kind == Interpolation::linear)
    x = padCoordinate(b, x, size, padding);
  int64_t count = kind == Interpolation::linear ? 2 : 4, powers = count, rank = TensorBuilder::rankOf(x);
  Type element = TensorBuilder::elementOf(x);
  Shape shape(TensorBuilder::shapeOf(x));
  shape.push_back(count);
  SmallVector<int64_t> positions = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value first = floorOf(b, x), fraction = b.broadcast(b.sub(x, first), shape, positions);
  auto perTap = [&](ArrayRef<double> values) {
    return b.broadcast(n.floatConstant(values, {count}, element), shape, {rank});
  };
  Value offsets =
      perTap(kind == Interpolation::linear ? ArrayRef<double>({0, 1}) : ArrayRef<double>({-1, 0, 1, 2}));
  Taps taps = wholeTaps(b, b.add(b.broadcast(first, shape, positions), offsets), size, padding, index);
  ArrayRef<double> coefficients = polynomials(kind);
  for (int64_t power = powers; power-- > 0;) {
    Value row = perTap(coefficients.slice(power * count, count));
    taps.weight = taps.weight ? b.add(b.mul(taps.weight, fraction), row) : row;
  }
  return taps;
}

Taps crossTaps(TensorBuilder &b, const Taps &a, const Taps &c, int64_t size) {
  Shape shape(TensorBuilder::shapeOf(a.index));
  int64_t rank = shape.size(), outer = shape.back(), inner = TensorBuilder::shapeOf(c.index).back();
  shape.push_back(inner);
  Shape joined(ArrayRef<int64_t>(shape).drop_back(2));
  joined.push_back(outer * inner);
  SmallVector<int64_t> left = llvm::to_vector(llvm::seq<int64_t>(0, rank)), right = left;
  right.back() = rank;
  auto both = [&](Value x, Value y, auto meet) -> Value {
    if (!x && !y)
      return {};
    Value result = !x   ? b.broadcast(y, shape, right)
                   : !y ? b.broadcast(x, shape, left)
                        : meet(b.broadcast(x, shape, left), b.broadcast(y, shape, right));
    return b.reshape(result, joined);
  };
  Taps taps;
  taps.index = both(a.index, c.index,
                    [&](Value x, Value y) { return b.add(b.mulScalar(x, static_cast<double>(size)), y); });
  taps.weight = both(a.weight, c.weight, [&](Value x, Value y) { return b.mul(x, y); });
  taps.inside = both(a.inside, c.inside, [&](Value x, Value y) { return b.logicalAnd(x, y); });
  return taps;
}

Value channelTable(TensorBuilder &b, Value x, int64_t images, int64_t channels, int64_t volume) {
  Value planes = b.reshape(x, {images, channels, volume});
  return b.reshape(b.transpose(planes, {0, 2, 1}), {images * volume, channels});
}

Value readTaps(TensorBuilder &b, Value table, const Taps &taps) {
  Shape shape(TensorBuilder::shapeOf(taps.index));
  SmallVector<int64_t> dimensions = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  shape.push_back(TensorBuilder::shapeOf(table).back());
  Value read = nn::GatherOp::create(b, RankedTensorType::get(shape, TensorBuilder::elementOf(table)), table,
                                    taps.index, 0);
  if (taps.weight)
    read = b.mul(read, b.broadcast(b.cast(taps.weight, TensorBuilder::elementOf(table)), shape, dimensions));
  if (taps.inside)
    read = b.select(b.broadcast(taps.inside, shape, dimensions), read, b.zerosLike(read));
  return read;
}

Value sumTaps(TensorBuilder &b, Value table, const Taps &taps) {
  Value read = readTaps(b, table, taps);
  return b.sum(read, {TensorBuilder::rankOf(read) - 2});
}

} // namespace ortc::legalize
