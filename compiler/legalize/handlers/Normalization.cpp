// Batch, layer, group, instance norms and kin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/NormStatistics.h"
#include "compiler/legalize/handlers/Window.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// A vector over the channels (axis 1) of `shape`.
static Value perChannel(TensorBuilder &b, Value vector, Ints shape) {
  return b.broadcast(vector, shape, {1});
}

/// Whether operand i is known, and every element of it is `value`.
static bool isFilled(Node &n, unsigned i, double value) {
  const HostTensor *known = n.constant(i);
  if (!known)
    return false;
  for (int64_t k = 0, count = elementCount(n.shape(i)); k < count; ++k)
    if (known->getFloat(k) != value)
      return false;
  return true;
}

/// y * scale + bias, both over the channels. Ones and zeros, as exporters write them for a norm without
/// weights, are left out: what stays is the norm itself, of which nothing but its input is kept for the
/// gradient.
static Value scaleAndShift(Node &n, Value y, unsigned scale, unsigned bias) {
  Ints shape = TensorBuilder::shapeOf(y);
  if (!isFilled(n, scale, 1))
    y = n.b.mul(y, perChannel(n.b, n[scale], shape));
  return isFilled(n, bias, 0) ? y : n.b.add(y, perChannel(n.b, n[bias], shape));
}

/// Operands `first` to `last` have one element for each of `count` channels or groups.
static LogicalResult checkVectors(Node &n, unsigned first, unsigned last, int64_t count) {
  for (unsigned i = first; i <= last; ++i)
    if (n.shape(i) != Ints({count}))
      return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) + " for " + Twine(count) +
                      " channels or groups");
  return success();
}

/// A statistic for each of `channels`, of which there are several of every element.
static Value repeatTo(TensorBuilder &b, Value statistic, int64_t channels) {
  int64_t count = TensorBuilder::shapeOf(statistic)[0];
  if (count == channels)
    return statistic;
  return b.reshape(b.broadcast(statistic, {channels / count, count}, {1}), {channels});
}

/// The mean over the repetitions of a statistic of `count` elements.
static Value meanOfRepeats(TensorBuilder &b, Value repeated, int64_t count) {
  int64_t times = TensorBuilder::shapeOf(repeated)[0] / count;
  if (times == 1)
    return repeated;
  return b.mulScalar(b.sum(b.reshape(repeated, {times, count}), {0}), 1.0 / static_cast<double>(times));
}

LogicalResult batchNormalization(Node &n) {
  TensorBuilder &b = n.b;
  int64_t rank = n.rank(0);
  if (rank < 2)
    return n.refuse("its input has fewer than 2 dimensions");
  if (n.version() < 9 && n.getInt("spatial", 1) == 0)
    return n.refuse("spatial=0 is not supported");
  if (failed(checkVectors(n, 1, 4, n.shape(0)[1])))
    return failure();
  BatchNormMode mode = n.options().batchNorm.mode;
  bool byBatch =
           mode == BatchNormMode::Train || (mode == BatchNormMode::AsExported && normalizesByBatch(n.op)),
       trains = n.options().trains;
  double epsilon = n.getFloat("epsilon", 1e-5f), momentum = n.getFloat("momentum", 0.9f);
  Value mean = n[3], variance = n[4], meanState, varianceState;
  switch (statisticsOf(n.op)) {
  case NormStatistics::batch:
    byBatch = true;
    break;
  case NormStatistics::given:
    if (byBatch && trains && normalizesByBatch(n.op))
      return n.refuse("its running statistics are computed by the graph, so they cannot be updated");
    byBatch = false;
    break;
  case NormStatistics::running:
    byBatch &= trains && n.options().mode == Mode::train;
    if (!trains)
      break;
    // They are state also where no step updates them: checkpoints hold them, as PyTorch's do.
    meanState = n.walk.stateOf(n.op.getInput(3), n.op);
    varianceState = n.walk.stateOf(n.op.getInput(4), n.op);
    mean = repeatTo(b, meanState, n.shape(0)[1]);
    variance = repeatTo(b, varianceState, n.shape(0)[1]);
  }
  Value x = n[0], centred, inverse, newMean, newVariance;
  newMean = mean;
  newVariance = variance;
  if (byBatch) {
    SmallVector<int64_t> axes = {0};
    for (int64_t i = 2; i < rank; ++i)
      axes.push_back(i);
    auto [batchMean, batchVariance] = b.moments(x, axes);
    auto blend = [&](Value running, Value batch) {
      return b.add(b.mulScalar(running, momentum), b.mulScalar(batch, 1 - momentum));
    };
    newMean = blend(mean, batchMean);
    double count = double(TensorBuilder::typeOf(x).getNumElements()) / n.shape(0)[1];
    bool isUnbiased = n.options().batchNorm.isUnbiased && meanState;
    if (isUnbiased && count <= 1)
      return n.refuse("one value a channel has no variance (--batch-norm with unbiased=1)");
    newVariance =
        blend(variance, isUnbiased ? b.mulScalar(batchVariance, count / (count - 1)) : batchVariance);
    auto update = [&](unsigned i, Value state, Value value) {
      if (state)
        n.walk.updateState(n.op.getInput(i), n.op, meanOfRepeats(b, value, TensorBuilder::shapeOf(state)[0]));
    };
    update(3, meanState, newMean);
    update(4, varianceState, newVariance);
    mean = batchMean;
    variance = batchVariance;
  }
  Ints shape = n.shape(0);
  centred = b.sub(x, perChannel(b, mean, shape));
  inverse = b.rsqrt(b.addScalar(variance, epsilon));
  Value y = scaleAndShift(n, b.mul(centred, perChannel(b, inverse, shape)), 1, 2);
  // Before opset 14 the batch's own statistics are outputs 3 and 4.
  Value results[5] = {y, newMean, newVariance, mean, variance};
  return n.yield(results);
}

LogicalResult layerNormalization(Node &n) {
  TensorBuilder &b = n.b;
  int64_t rank = n.rank(0), axis = n.getInt("axis", -1);
  if (failed(n.axis(axis, rank)))
    return failure();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(axis, rank));
  Value mean, inverse;
  Value y = normalize(b, n[0], axes, n.getFloat("epsilon", 1e-5f), &mean, &inverse);
  for (unsigned i : {1u, 2u}) {
    if (!n.has(i))
      continue;
    Value pair[2] = {y, n[i]};
    if (failed(n.broadcast(pair)))
      return failure();
    if (TensorBuilder::shapeOf(pair[0]) != n.shape(0))
      return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) +
                      " does not broadcast to its input");
    y = i == 1 ? b.mul(pair[0], pair[1]) : b.add(pair[0], pair[1]);
  }
  Value results[3] = {y, mean, inverse};
  return n.yield(results);
}

LogicalResult rmsNormalization(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  int64_t rank = n.rank(0), axis = n.getInt("axis", -1);
  if (failed(n.axis(axis, rank)))
    return failure();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(axis, rank));
  Value inverse, pair[2] = {normalizeByRoot(n.b, n[0], axes, n.getFloat("epsilon", 1e-5f), &inverse), n[1]};
  if (failed(n.broadcast(pair)))
    return failure();
  if (TensorBuilder::shapeOf(pair[0]) != n.shape(0))
    return n.refuse("operand 1 of shape " + shapeText(n.shape(1)) + " does not broadcast to its input");
  Value results[2] = {n.b.mul(pair[0], pair[1]), inverse};
  return n.yield(results);
}

LogicalResult instanceNormalization(Node &n) {
  if (n.rank(0) < 3)
    return n.refuse("its input has no spatial dimensions");
  if (failed(checkVectors(n, 1, 2, n.shape(0)[1])))
    return failure();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, n.rank(0)));
  return n.yield(scaleAndShift(n, normalize(n.b, n[0], axes, n.getFloat("epsilon", 1e-5f)), 1, 2));
}

LogicalResult groupNormalization(Node &n) {
  TensorBuilder &b = n.b;
  Shape shape(n.shape(0));
  int64_t groups = n.getInt("num_groups", 1);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups)
    return n.refuse("an input of shape " + shapeText(shape) + " cannot be cut in " + Twine(groups) +
                    " groups");
  // [batch, groups, channels of a group, spatial].
  Shape grouped = {shape[0], groups, shape[1] / groups};
  grouped.append(shape.begin() + 2, shape.end());
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, grouped.size()));
  Value y = normalize(b, b.reshape(n[0], grouped), axes, n.getFloat("epsilon", 1e-5f));
  if (n.version() < 21) { // scale and bias per group
    if (failed(checkVectors(n, 1, 2, groups)))
      return failure();
    return n.yield(b.reshape(scaleAndShift(n, y, 1, 2), shape));
  }
  if (failed(checkVectors(n, 1, 2, shape[1])))
    return failure();
  return n.yield(scaleAndShift(n, b.reshape(y, shape), 1, 2));
}

// y = x / (bias + alpha / size * sum of squares of the neighbouring channels) ^ beta. The channels are the
// one spatial dimension of a pool: [batch, channels, volume] needs no transpose.
LogicalResult localResponseNormalization(Node &n) {
  TensorBuilder &b = n.b;
  Ints x = n.shape(0);
  int64_t size = n.getInt("size", 1);
  if (x.size() < 2 || size < 1 || size > kMostWindow)
    return n.refuse("an input of shape " + shapeText(x) + " and a size of " + Twine(size));
  int64_t volume = elementCount(x.drop_front(2)), low = (size - 1) / 2, high = size - 1 - low;
  Value squares = b.reshape(b.mul(n[0], n[0]), {x[0], x[1], volume});
  Value mean = nn::AvgPoolOp::create(b, TensorBuilder::typeOf(squares), squares, Ints{size}, Ints{1},
                                     Ints{low}, Ints{high}, Ints{0}, Ints{1}, true);
  Value base =
      b.addScalar(b.mulScalar(b.reshape(mean, x), n.getFloat("alpha", 1e-4f)), n.getFloat("bias", 1));
  double beta = n.getFloat("beta", 0.75f);
  Value divisor = power(b, base, beta);
  if (!divisor)
    divisor = b.pow(base, b.constantLike(base, beta));
  return n.yield(b.div(n[0], divisor));
}

LogicalResult meanVarianceNormalization(Node &n) {
  SmallVector<int64_t> axes = n.getInts("axes");
  if (!n.hasAttribute("axes"))
    axes = {0, 2, 3};
  if (failed(n.axes(axes, n.rank(0))))
    return failure();
  // The standard adds its epsilon to the deviation, not to the variance.
  TensorBuilder &b = n.b;
  Ints shape = n.shape(0);
  auto [mean, variance] = b.moments(n[0], axes);
  Value deviation = b.addScalar(rootOrZero(b, variance), 1e-9);
  Value centred = b.sub(n[0], b.broadcastAlong(mean, shape, axes));
  return n.yield(b.div(centred, b.broadcastAlong(deviation, shape, axes)));
}

LogicalResult lpNormalization(Node &n) {
  TensorBuilder &b = n.b;
  int64_t axis = n.getInt("axis", -1), p = n.getInt("p", 2);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (p != 1 && p != 2)
    return n.refuse("p is " + Twine(p) + ", not 1 or 2");
  Value norm = p == 1 ? b.sum(b.abs(n[0]), {axis}) : rootOrZero(b, b.sum(b.mul(n[0], n[0]), {axis}));
  // A zero vector stays zero, as ONNX's tests have it.
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, norm, b.zerosLike(norm));
  Value divisor = b.select(isZero, b.constantLike(norm, 1), norm);
  return n.yield(b.div(n[0], b.broadcastAlong(divisor, n.shape(0), {axis})));
}

} // namespace ortc::legalize::handlers
