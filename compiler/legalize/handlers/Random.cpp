// Dropout and random operators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is drawn with nn.random: bits that follow from the training step, the element and a key made of
// seed and name.
#include "compiler/legalize/Node.h"
#include "compiler/legalize/Table.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

/// The node's own `seed`, an integer of Dropout and a number of the others.
static std::optional<uint64_t> seedOf(Node &n) {
  if (!n.hasAttribute("seed"))
    return std::nullopt;
  if (n.op.getOpType() == "Dropout")
    return static_cast<uint64_t>(n.getInt("seed", 0));
  return llvm::bit_cast<uint64_t>(n.getFloat("seed", 0));
}

/// Two tensors of random bits, or nothing when there are too many elements.
static std::optional<std::pair<Value, Value>> drawBits(Node &n, Ints shape, unsigned part) {
  if (elementCount(shape) > int64_t(1) << 32) {
    (void)n.refuse("it draws " + std::to_string(elementCount(shape)) + " random numbers, more than 2^32");
    return std::nullopt;
  }
  auto type = RankedTensorType::get(shape, n.b.getI32Type());
  auto op = nn::RandomOp::create(n.b, type, n.walk.randomStep(), n.walk.randomKey(n.op, seedOf(n), part));
  return std::pair<Value, Value>(op.getFirst(), op.getSecond());
}

/// The upper `bits` (less than 32) of a word as a whole number.
static Value upperBits(TensorBuilder &b, Value word, int bits, Type element) {
  return b.cast(arith::ShRUIOp::create(b, word, b.constantLike(word, 32 - bits)), element);
}

/// Two numbers in [0, 1): multiples of 2^-24 in f32, of 2^-53 in f64. `element` is one of these.
static std::optional<std::pair<Value, Value>> drawUniform(Node &n, Ints shape, Type element,
                                                          unsigned part = 0) {
  TensorBuilder &b = n.b;
  auto words = drawBits(n, shape, part);
  if (!words)
    return std::nullopt;
  auto single = [&](Value word) { return b.mulScalar(upperBits(b, word, 24, element), 0x1p-24); };
  auto joined = [&](std::pair<Value, Value> pair) {
    Value high = b.mulScalar(upperBits(b, pair.first, 27, element), 0x1p26);
    return b.mulScalar(b.add(high, upperBits(b, pair.second, 26, element)), 0x1p-53);
  };
  if (!element.isF64())
    return std::pair(single(words->first), single(words->second));
  auto more = drawBits(n, shape, part + 1);
  if (!more)
    return std::nullopt;
  return std::pair(joined(*words), joined(*more));
}

/// The floating-point type that computes for `element`.
static Type computing(TensorBuilder &b, Type element) { return element.isF64() ? element : b.getF32Type(); }

/// What operators without operands and those "like" another tensor have in common.
static LogicalResult resultOf(Node &n, Shape &shape, Type &element) {
  if (n.size()) {
    shape.assign(n.shape(0).begin(), n.shape(0).end());
    element = n.element(0);
  } else {
    shape.assign(n.op.getInts("shape").begin(), n.op.getInts("shape").end());
    for (int64_t size : shape)
      if (size < 0)
        return n.refuse("its shape has a dimension of " + std::to_string(size));
  }
  if (!n.size() || n.hasAttribute("dtype"))
    element = n.elementType(n.getInt("dtype", 1)).type;
  if (!element || !isa<FloatType>(element))
    return n.refuse("its result is not floating-point; name the type in `dtype`");
  return success();
}

/// The largest value of `element` below `limit`.
static double below(double limit, Type element) {
  APFloat value(limit);
  bool losesInfo;
  value.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmTowardNegative, &losesInfo);
  if (!losesInfo)
    value.next(/*nextDown=*/true);
  return value.convertToDouble();
}

LogicalResult randomUniform(Node &n) {
  Shape shape;
  Type element;
  if (failed(resultOf(n, shape, element)))
    return failure();
  TensorBuilder &b = n.b;
  double low = n.getFloat("low", 0), high = n.getFloat("high", 1);
  if (!(low <= high) || !std::isfinite(high - low))
    return n.refuse("its range from " + std::to_string(low) + " to " + std::to_string(high) + " is none");
  Type wide = computing(b, element);
  auto drawn = drawUniform(n, shape, wide);
  if (!drawn)
    return failure();
  Value x = b.addScalar(b.mulScalar(drawn->first, high - low), low);
  if (low < high) { // rounding must not reach what is out of range
    Value limit = b.constantLike(x, std::max(low, below(high, element)));
    x = b.select(b.compare(arith::CmpFPredicate::OLT, x, limit), x, limit);
  }
  return n.yield(b.cast(x, element));
}

// Box and Muller. 1 - u is in (0, 1], so the logarithm is finite.
LogicalResult randomNormal(Node &n) {
  Shape shape;
  Type element;
  if (failed(resultOf(n, shape, element)))
    return failure();
  TensorBuilder &b = n.b;
  auto drawn = drawUniform(n, shape, computing(b, element));
  if (!drawn)
    return failure();
  auto [u, v] = *drawn;
  Value radius = b.sqrt(b.mulScalar(b.log(b.sub(b.constantLike(u, 1), u)), -2));
  Value x = b.mul(radius, math::CosOp::create(b, b.mulScalar(v, 2 * M_PI)));
  x = b.addScalar(b.mulScalar(x, n.getFloat("scale", 1)), n.getFloat("mean", 0));
  return n.yield(b.cast(x, element));
}

LogicalResult bernoulli(Node &n) {
  if (!n.isFloat(0))
    return n.refuse("its probabilities are not floating-point");
  TensorBuilder &b = n.b;
  ElementType to = n.hasAttribute("dtype") ? n.elementType(n.getInt("dtype", 1)) : n.typeOf(0);
  if (!to.type)
    return n.refuse("the element type of its result is not supported");
  Type wide = computing(b, n.element(0));
  auto drawn = drawUniform(n, n.shape(0), wide);
  if (!drawn)
    return failure();
  Value hit = b.compare(arith::CmpFPredicate::OLT, drawn->first, b.cast(n[0], wide));
  return n.yieldAs(b.cast(hit, to.type), to.isUnsigned, to.lowBits);
}

// The class is the number of sums of probabilities that are not above a uniform number, which is below the
// last sum: a class of probability 0 is never drawn.
LogicalResult multinomial(Node &n) {
  if (!n.isFloat(0) || n.rank(0) != 2 || n.shape(0)[1] == 0)
    return n.refuse("its input is not a matrix of log-probabilities");
  TensorBuilder &b = n.b;
  int64_t rows = n.shape(0)[0], classes = n.shape(0)[1], samples = n.getInt("sample_size", 1);
  ElementType to = n.elementType(n.getInt("dtype", 6));
  if (samples < 0 || !to.type || !isa<IntegerType>(to.type))
    return n.refuse("its number of samples is negative, or its result holds no integers");
  Type wide = computing(b, n.element(0));
  auto drawn = drawUniform(n, {rows, samples}, wide);
  if (!drawn)
    return failure();
  Value probabilities = b.softmax(b.cast(n[0], wide), 1);
  Value sums = nn::CumSumOp::create(b, probabilities.getType(), probabilities, 1, false, false);
  Value last = b.broadcastTo(b.sliceAxis(sums, 1, classes - 1, 1), {rows, samples});
  Value point = b.mul(drawn->first, last);
  Value passed = b.compare(arith::CmpFPredicate::OLE, b.broadcast(sums, {rows, samples, classes}, {0, 2}),
                           b.broadcast(point, {rows, samples, classes}, {0, 1}));
  Value count = b.sum(b.cast(passed, b.getI32Type()), {2});
  return n.yieldAs(b.cast(b.minimum(count, b.constantLike(count, classes - 1)), to.type), to.isUnsigned,
                   to.lowBits);
}

/// Whether a Dropout node drops anything in this function.
static bool drops(Node &n, bool trainingMode) {
  const LegalizeOptions &options = n.options();
  return options.mode == Mode::train && options.trains &&
         (trainingMode ? options.dropout.mode != DropoutMode::Off
                       : options.dropout.mode == DropoutMode::Train);
}

LogicalResult dropout(Node &n) {
  TensorBuilder &b = n.b;
  bool trainingMode = false;
  double ratio = n.getFloat("ratio", 0.5f);
  if (n.version() >= 12) {
    SmallVector<double> value;
    SmallVector<int64_t> mode;
    if ((n.has(1) && failed(n.floats(1, "ratio", value))) ||
        (n.has(2) && failed(n.ints(2, "training_mode", mode))))
      return failure();
    ratio = value.empty() ? 0.5 : value[0];
    trainingMode = !mode.empty() && mode[0];
  }
  Type element = n.element(0), maskElement = n.version() >= 10 ? Type(b.getI1Type()) : element;
  if (!drops(n, trainingMode) || ratio == 0) {
    Value mask = n.wants(1) ? b.constant(RankedTensorType::get(n.shape(0), maskElement), 1) : Value();
    return n.yield({n[0], mask});
  }
  if (!(ratio > 0 && ratio < 1))
    return n.refuse("its ratio is " + std::to_string(ratio) + "; a ratio in [0, 1) can be trained");
  if (!n.isFloat(0))
    return n.refuse("its input is not floating-point");
  auto words = drawBits(n, n.shape(0), 0);
  if (!words)
    return failure();
  // Kept where the bits, an unsigned number, are not below ratio * 2^32.
  auto threshold = static_cast<uint32_t>(std::min(std::floor(ratio * 0x1p32 + 0.5), 0x1p32 - 1));
  Value limit = b.constantLike(words->first, static_cast<int32_t>(threshold));
  Value mask = b.compare(arith::CmpIPredicate::uge, words->first, limit);
  Value x = b.cast(n[0], computing(b, element));
  Value kept = b.select(mask, b.mulScalar(x, 1 / (1 - ratio)), b.zerosLike(x));
  return n.yield({b.cast(kept, element), n.wants(1) ? b.cast(mask, maskElement) : Value()});
}

// compiler/frontend/InferenceForm.h.
LogicalResult byMode(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  Shape shape;
  Value values[2] = {n[0], n[1]};
  if (failed(n.broadcastShape(values, shape)))
    return failure();
  if (Ints(shape) != n.shape(0))
    return n.refuse("a value of shape " + shapeText(n.shape(1)) + " cannot be spread to " +
                    shapeText(n.shape(0)));
  if (drops(n, /*trainingMode=*/true))
    return n.yield(n[0]);
  if (n.shape(1) != n.shape(0) && !n.constant(1))
    n.walk.noteWideMask(n.op);
  return n.yield(n.b.broadcastTo(n[1], shape));
}

} // namespace ortc::legalize::handlers
