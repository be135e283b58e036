// Values rounded to integers and back, as --qat trains with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges, scales and zero points as the observers of torch.ao.quantization have them. The gradient passes where nothing
// is cut off. A scale that is learned has LSQ's gradient (Esser et al., "Learned Step Size Quantization", 2020).
// `ortc export` computes scale and zero point by the same formulas (engine/export/export_quantized.cpp).
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::legalize::handlers {

namespace {

/// What the attributes say.
struct Quantizer {
  double lowest, highest; ///< integers
  bool isSymmetric;
  std::optional<double> averaging;
  int64_t steps;                ///< that observe; 0: all
  SmallVector<int64_t> channel; ///< the axis of the channels; empty where there is one range
};

/// What a step rounds with, each a scalar or a vector over the channels.
struct Grid {
  Value scale, zeroPoint; ///< the second is null where it is zero
  Value isSeen;           ///< i1: there is a range
  Value isObserving;      ///< i1: this step moves it; null: it does, or this is no training step
};

} // namespace

static LogicalResult readAttributes(Node &n, Quantizer &q) {
  int64_t bits = n.getInt("bits", 0), axis = n.getInt("axis", 0);
  if (bits < 2 || bits > 8)
    return n.refuse("bits is " + Twine(bits) + " but must be from 2 to 8");
  q.isSymmetric = n.getInt("symmetric", 0);
  q.lowest = q.isSymmetric ? -std::ldexp(1.0, static_cast<int>(bits) - 1) : 0;
  q.highest = q.lowest + std::ldexp(1.0, static_cast<int>(bits)) - 1;
  if (n.hasAttribute("averaging"))
    q.averaging = n.getFloat("averaging", 0);
  q.steps = n.getInt("steps", 0);
  SmallVector<int64_t> wanted;
  if (n.hasAttribute("axis")) {
    if (failed(n.axis(axis, n.rank(0))))
      return failure();
    q.channel = {axis};
    wanted = {n.shape(0)[axis]};
  }
  for (unsigned i = 1; i < n.size(); ++i)
    if (n.has(i) && n.shape(i) != Ints(wanted))
      return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) + " where " +
                      shapeText(wanted) + " is needed");
  return elementCount(n.shape(0)) ? success() : n.refuse("an input without elements");
}

/// The range after this step's values, which are state from then on.
static void observe(Node &n, const Quantizer &q, Value &minimum, Value &maximum, Grid &grid) {
  TensorBuilder &b = n.b;
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < n.rank(0); ++axis)
    if (!llvm::is_contained(q.channel, axis))
      axes.push_back(axis);
  Value x = b.detach(n[0]);
  Value least = b.reduce(nn::ReduceKind::min, x, axes), most = b.reduce(nn::ReduceKind::max, x, axes);
  Value isSeen = b.compare(arith::CmpFPredicate::OLE, minimum, maximum);
  // A step with infinities or NaN moves no range: loss scaling may skip it, and training goes on.
  Value limit = b.constantLike(least, std::numeric_limits<double>::infinity());
  Value moves = b.logicalAnd(b.compare(arith::CmpFPredicate::OLT, b.abs(least), limit),
                             b.compare(arith::CmpFPredicate::OLT, b.abs(most), limit));
  if (q.averaging) {
    auto average = [&](Value old, Value now) {
      return b.select(isSeen, b.add(old, b.mulScalar(b.sub(now, old), *q.averaging)), now);
    };
    least = average(minimum, least);
    most = average(maximum, most);
  } else {
    least = b.minimum(minimum, least);
    most = b.maximum(maximum, most);
  }
  if (q.steps > 0) {
    Value step = n.walk.stepsBefore();
    Value isEarly = b.compare(arith::CmpIPredicate::slt, step, b.constantLike(step, double(q.steps)));
    grid.isObserving = b.logicalOr(b.broadcastTo(isEarly, b.shapeOf(minimum)), b.logicalNot(isSeen));
    moves = b.logicalAnd(moves, grid.isObserving);
  }
  least = b.select(moves, least, minimum);
  most = b.select(moves, most, maximum);
  n.walk.updateState(n.op.getInput(1), n.op, least);
  n.walk.updateState(n.op.getInput(2), n.op, most);
  minimum = least;
  maximum = most;
}

/// x times `factor`, rounded once: as good as a division where 1 / factor is a number of float32.
static Value timesExact(TensorBuilder &b, Value x, double factor) {
  Type wide = b.getF64Type();
  return b.cast(b.mulScalar(b.cast(x, wide), factor), TensorBuilder::elementOf(x));
}

/// Scale and zero point of a range, which zero is always in.
static void computeGrid(TensorBuilder &b, const Quantizer &q, Value minimum, Value maximum, Grid &grid) {
  grid.isSeen = b.compare(arith::CmpFPredicate::OLE, minimum, maximum);
  Value zero = b.zerosLike(minimum), smallest = b.constantLike(zero, std::numeric_limits<float>::epsilon());
  Value low = b.minimum(minimum, zero), high = b.maximum(maximum, zero);
  double steps = q.highest - q.lowest;
  if (q.isSymmetric) {
    grid.scale = b.maximum(timesExact(b, b.maximum(b.neg(low), high), 2 / steps), smallest);
    return;
  }
  grid.scale = b.maximum(timesExact(b, b.sub(high, low), 1 / steps), smallest);
  Value zeroPoint = b.neg(b.createOrFold<math::RoundEvenOp>(b.div(low, grid.scale)));
  grid.zeroPoint = clip(b, zeroPoint, zero, b.constantLike(zero, q.highest));
}

/// The part of the result whose gradient is that of a learned scale: by what the result moves with it, 0 in steps that
/// observe.
static Value learnScale(Node &n, const Quantizer &q, const Grid &grid, Value inside, Value distance,
                        Value cut) {
  TensorBuilder &b = n.b;
  Ints shape = n.shape(0);
  double factor = 1 / std::sqrt(static_cast<double>(elementCount(shape)) * q.highest);
  Value slope = b.mulScalar(b.select(inside, distance, cut), factor);
  if (grid.isObserving)
    slope = b.select(b.broadcast(grid.isObserving, shape, q.channel), b.zerosLike(slope), slope);
  return b.mul(b.broadcast(n[3], shape, q.channel), b.detach(slope));
}

LogicalResult fakeQuantize(Node &n) {
  Quantizer q;
  if (failed(n.require({0, 1, 2})) || failed(readAttributes(n, q)))
    return failure();
  TensorBuilder &b = n.b;
  Value minimum, maximum;
  if (n.options().trains) {
    minimum = n.walk.stateOf(n.op.getInput(1), n.op);
    maximum = n.walk.stateOf(n.op.getInput(2), n.op);
    if (!minimum || !maximum)
      return n.refuse("its range is computed by the graph, so it cannot be updated");
  } else {
    minimum = n[1];
    maximum = n[2];
  }
  Grid grid;
  bool isTraining = n.options().trains && n.options().mode == Mode::train;
  if (isTraining)
    observe(n, q, minimum, maximum, grid);
  computeGrid(b, q, minimum, maximum, grid);
  if (n.has(3))
    grid.scale = b.maximum(b.add(grid.scale, b.detach(n[3])),
                           b.constantLike(grid.scale, std::numeric_limits<float>::epsilon()));
  Ints shape = n.shape(0);
  auto spread = [&](Value value) { return b.broadcast(value, shape, q.channel); };
  // The element that sets a symmetric range lies half way between two integers: how it is divided decides which it is.
  Value inverse = b.div(b.constantLike(grid.scale, 1), grid.scale);
  Value x = n[0], scale = spread(grid.scale), quotient = b.mul(x, spread(inverse));
  Value rounded = b.createOrFold<math::RoundEvenOp>(quotient);
  Value zeroPoint = grid.zeroPoint ? spread(grid.zeroPoint) : Value();
  Value low = b.constantLike(x, q.lowest), high = b.constantLike(x, q.highest);
  if (zeroPoint) {
    low = b.sub(low, zeroPoint);
    high = b.sub(high, zeroPoint);
  }
  Value cut = clip(b, rounded, low, high), value = b.mul(cut, scale);
  if (!isTraining) // before the first step there is nothing to round by
    return n.yield(b.select(spread(grid.isSeen), value, x));
  Value inside = b.logicalAnd(b.compare(arith::CmpFPredicate::OGE, rounded, low),
                              b.compare(arith::CmpFPredicate::OLE, rounded, high));
  Value through = b.select(inside, x, b.zerosLike(x));
  if (n.has(3))
    through = b.add(through, learnScale(n, q, grid, inside, b.sub(rounded, quotient), cut));
  return n.yield(Value(nn::StraightThroughOp::create(b, value, through)));
}

} // namespace ortc::legalize::handlers
