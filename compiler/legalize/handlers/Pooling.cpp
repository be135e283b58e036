// Pools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Window.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// Every window must hold an element: nn has no value for an empty one. Only windows that start in the padding
/// can be empty.
static LogicalResult checkWindows(Node &n, const Window &window, Ints input) {
  for (size_t i = 0; i < input.size(); ++i) {
    auto refuse = [&](int64_t place) {
      return n.refuse("window " + Twine(place) + " of spatial dimension " + Twine(i) +
                      " lies in the padding alone");
    };
    int64_t stride = window.strides[i], dilation = window.dilations[i], last = window.output[i] - 1;
    for (int64_t o = 0; o <= last && o * stride < window.low[i]; ++o) {
      int64_t start = o * stride - window.low[i], skipped = (-start + dilation - 1) / dilation;
      if (skipped >= window.size[i] || start + skipped * dilation >= input[i])
        return refuse(o);
    }
    if (last * stride - window.low[i] >= input[i])
      return refuse(last);
  }
  return success();
}

/// The windows of a pool, after the checks that all of them share.
static LogicalResult readPool(Node &n, Window &window) {
  if (n.rank(0) < 3)
    return n.refuse("its input has no spatial dimensions");
  Ints input = n.shape(0).drop_front(2);
  return success(succeeded(window.read(n, {}, input, n.getInt("ceil_mode", 0))) &&
                 succeeded(checkWindows(n, window, input)));
}

static RankedTensorType resultType(Node &n, const Window &window, Type element) {
  Shape shape = {n.shape(0)[0]};
  shape.append(window.output.begin(), window.output.end());
  shape.push_back(n.shape(0)[1]);
  return RankedTensorType::get(shape, element);
}

/// Positions in column-major order (the first spatial dimension runs fastest) from row-major ones.
static Value columnMajor(TensorBuilder &b, Value indices, Ints dims) {
  Value result = b.zerosLike(indices), rest = indices;
  int64_t stride = elementCount(dims);
  for (int64_t size : llvm::reverse(dims)) {
    Value divisor = b.constantLike(rest, static_cast<double>(size));
    stride /= size;
    result =
        b.add(result, b.mulScalar(arith::RemSIOp::create(b, rest, divisor), static_cast<double>(stride)));
    rest = b.div(rest, divisor);
  }
  return result;
}

/// Positions in the whole input, as ONNX counts them.
static Value wholePositions(Node &n, const Window &window, Value taps) {
  TensorBuilder &b = n.b;
  Ints x = n.shape(0);
  Value indices =
      b.tapPositions(taps, x.drop_front(2), window.size, window.strides, window.low, window.dilations);
  if (n.getInt("storage_order", 0))
    indices = columnMajor(b, indices, x.drop_front(2));
  int64_t volume = elementCount(x.drop_front(2)), rank = n.rank(0);
  Value wide = b.cast(b.transpose(indices, channelsFirst(rank)), b.getI64Type());
  auto type = TensorBuilder::typeOf(wide);
  Value image = b.mulScalar(b.iota(type, 0), static_cast<double>(x[1] * volume));
  Value channel = b.mulScalar(b.iota(type, 1), static_cast<double>(volume));
  return b.add(wide, b.add(image, channel));
}

LogicalResult maxPool(Node &n) {
  Window window;
  if (failed(readPool(n, window)))
    return failure();
  TensorBuilder &b = n.b;
  Value x = n[0];
  if (!n.isFloat(0)) {
    if (!n.element(0).isInteger(8))
      return n.refuse("integers of other than 8 bits are not supported");
    x = b.cast(x, b.getF32Type(), n.isUnsigned(0));
  }
  auto pool = nn::MaxPoolOp::create(b, resultType(n, window, TensorBuilder::elementOf(x)),
                                    resultType(n, window, nn::tapType(b.getContext(), window.size)),
                                    b.transpose(x, channelsLast(n.rank(0))), window.size, window.strides,
                                    window.low, window.high, window.overhang, window.dilations);
  Value y = b.transpose(pool.getResult(), channelsFirst(n.rank(0)));
  if (!n.isFloat(0))
    y = b.cast(y, n.element(0), false, n.isUnsigned(0));
  return n.yieldBound(
      {{y, n.isUnsigned(0)}, {n.wants(1) ? wholePositions(n, window, pool.getTaps()) : Value(), false}});
}

static Value averagePoolOf(Node &n, Value x, const Window &window, bool countPadding) {
  return nn::AvgPoolOp::create(n.b, resultType(n, window, TensorBuilder::elementOf(x)), x, window.size,
                               window.strides, window.low, window.high, window.overhang, window.dilations,
                               countPadding);
}

LogicalResult averagePool(Node &n) {
  Window window;
  if (failed(readPool(n, window)))
    return failure();
  Value y = averagePoolOf(n, n.b.transpose(n[0], channelsLast(n.rank(0))), window,
                          n.getInt("count_include_pad", 0));
  return n.yield(n.b.transpose(y, channelsFirst(n.rank(0))));
}

/// |x| to the power p: by multiplication where p is a small integer.
static Value absolutePower(TensorBuilder &b, Value x, int64_t p) {
  if (Value result = power(b, p % 2 ? b.abs(x) : x, static_cast<double>(p)))
    return result;
  return b.pow(b.abs(x), b.constantLike(x, static_cast<double>(p)));
}

/// The p-th root of x >= 0, with gradient 0 at 0.
static Value positiveRoot(TensorBuilder &b, Value x, int64_t p) {
  if (p == 1)
    return x;
  if (p == 2)
    return rootOrZero(b, x);
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, x, b.zerosLike(x)),
        safe = b.select(isZero, b.constantLike(x, 1), x);
  return b.select(isZero, b.zerosLike(x), b.pow(safe, b.constantLike(x, 1.0 / static_cast<double>(p))));
}

static LogicalResult readPower(Node &n, int64_t &p) {
  p = n.getInt("p", 2);
  return p < 1 ? n.refuse("p is " + Twine(p) + ", which is below 1") : success();
}

LogicalResult lpPool(Node &n) {
  Window window;
  if (failed(readPool(n, window)))
    return failure();
  // With the overhang as padding every window counts all its places, so a mean is a sum over a constant.
  for (size_t i = 0; i < window.size.size(); ++i) {
    window.high[i] += window.overhang[i];
    window.overhang[i] = 0;
  }
  int64_t p;
  if (failed(readPower(n, p)))
    return failure();
  TensorBuilder &b = n.b;
  Value powers = absolutePower(b, b.transpose(n[0], channelsLast(n.rank(0))), p);
  Value sum =
      b.mulScalar(averagePoolOf(n, powers, window, true), static_cast<double>(elementCount(window.size)));
  return n.yield(b.transpose(positiveRoot(b, sum, p), channelsFirst(n.rank(0))));
}

/// The axes that a global pool is over; empty after a refusal.
static SmallVector<int64_t> spatialAxes(Node &n) {
  if (n.rank(0) < 3) {
    (void)n.refuse("its input has no spatial dimensions");
    return {};
  }
  if (elementCount(n.shape(0).drop_front(2)) == 0) {
    (void)n.refuse("an input of " + shapeText(n.shape(0)) + " without elements");
    return {};
  }
  return llvm::to_vector(llvm::seq<int64_t>(2, n.rank(0)));
}

LogicalResult globalAveragePool(Node &n) {
  SmallVector<int64_t> axes = spatialAxes(n);
  return axes.empty() ? failure() : n.yield(n.b.mean(n[0], axes, true));
}

LogicalResult globalLpPool(Node &n) {
  SmallVector<int64_t> axes = spatialAxes(n);
  int64_t p;
  if (axes.empty() || failed(readPower(n, p)))
    return failure();
  return n.yield(positiveRoot(n.b, n.b.sum(absolutePower(n.b, n[0], p), axes, true), p));
}

/// One window over everything: the first of equal elements has the gradient.
LogicalResult globalMaxPool(Node &n) {
  if (spatialAxes(n).empty())
    return failure();
  TensorBuilder &b = n.b;
  Ints x = n.shape(0);
  int64_t volume = elementCount(x.drop_front(2));
  Value flat = b.transpose(b.reshape(n[0], {x[0], x[1], volume}), {0, 2, 1});
  auto type = RankedTensorType::get({x[0], 1, x[1]}, n.element(0));
  auto pool = nn::MaxPoolOp::create(b, type, type.clone(nn::tapType(b.getContext(), {volume})), flat,
                                    Ints{volume}, Ints{volume}, Ints{0}, Ints{0}, Ints{0}, Ints{1});
  Shape shape(x);
  std::fill(shape.begin() + 2, shape.end(), 1);
  return n.yield(b.reshape(pool.getResult(), shape));
}

} // namespace ortc::legalize::handlers
