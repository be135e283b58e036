// Gradients of reductions and softmax.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::autodiff {

/// Along the last axis of `x`, the product of all elements before each one (after each one when `reverse`),
/// by doubling: ceil(log2 n) steps, nothing is divided.
static Value productOfOthers(Value x, bool reverse, TensorBuilder &b) {
  auto shape = TensorBuilder::shapeOf(x);
  int64_t rank = shape.size(), size = shape.back();
  Value one = b.scalar(TensorBuilder::elementOf(x), 1);
  // Moves by `distance`, ones come in.
  auto shift = [&](Value y, int64_t distance) {
    if (distance >= size)
      return b.constantLike(y, 1);
    nn::Shape none(rank, 0), in(rank, 0);
    in.back() = distance;
    Value kept = b.sliceAxis(y, rank - 1, reverse ? distance : 0, size - distance);
    return reverse ? b.pad(kept, one, none, in) : b.pad(kept, one, in, none);
  };
  Value product = shift(x, 1);
  for (int64_t distance = 1; distance < size - 1; distance *= 2)
    product = b.mul(product, shift(product, distance));
  return product;
}

static Value differentiateProduct(nn::ReduceOp op, Value dy, TensorBuilder &b) {
  Value x = op.getInput();
  auto shape = TensorBuilder::shapeOf(x), axes = op.getAxes();
  int64_t rank = shape.size();
  // The reduced axes go last and become one.
  SmallVector<int64_t> order = llvm::to_vector(nn::freeDimensions(rank, {}, axes));
  nn::Shape rows(nn::dropAxes(shape, axes)), flat(rows);
  order.append(axes.begin(), axes.end());
  flat.push_back(nn::elementCount(shape) / std::max<int64_t>(nn::elementCount(rows), 1));
  Value turned = b.transpose(x, order);
  Value row = b.reshape(turned, flat);
  Value others = b.mul(productOfOthers(row, false, b), productOfOthers(row, true, b));
  Value restored =
      b.transpose(b.reshape(others, TensorBuilder::shapeOf(turned)), nn::invertPermutation(order));
  return b.mul(b.broadcastAlong(dy, shape, axes), restored);
}

static Value differentiateExtreme(nn::ReduceOp op, Value dy, TensorBuilder &b) {
  Value x = op.getInput();
  auto shape = TensorBuilder::shapeOf(x), axes = op.getAxes();
  Value is = b.compare(arith::CmpFPredicate::OEQ, x, b.broadcastAlong(op.getResult(), shape, axes));
  Value count = b.sum(b.cast(is, TensorBuilder::elementOf(x)), axes);
  return b.select(is, b.broadcastAlong(b.div(dy, count), shape, axes), b.zerosLike(x));
}

// "nn.reduce": y = sum, prod, max or min of x over axes
// dx = dy repeated; times the product of the others; or, where x equals the extreme, divided by how many do
// saved: prod: the input; max and min: input and result; sum: nothing
// special points: max and min: equal elements share evenly; prod: zeros are fine, nothing is divided
static Value differentiateReduce(nn::ReduceOp op, Value dy, TensorBuilder &b) {
  switch (op.getKind()) {
  case nn::ReduceKind::sum:
    return b.broadcastAlong(dy, TensorBuilder::shapeOf(op.getInput()), op.getAxes());
  case nn::ReduceKind::prod:
    return differentiateProduct(op, dy, b);
  case nn::ReduceKind::max:
  case nn::ReduceKind::min:
    return differentiateExtreme(op, dy, b);
  }
  llvm_unreachable("a reduction is one of four kinds");
}

// "nn.moments": mean = sum(x) / n, variance = sum((x - mean)^2) / n
// dx = dmean / n + 2 (x - mean) dvariance / n
// saved: the input, the mean when the variance is used
static Gradients differentiateMoments(nn::MomentsOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value x = op.getInput(), gradient;
  auto shape = TensorBuilder::shapeOf(x), axes = op.getAxes();
  double count = static_cast<double>(nn::elementCount(shape)) /
                 std::max<double>(1, nn::elementCount(TensorBuilder::shapeOf(op.getMean())));
  if (request.hasCotangent(1)) {
    Value scaled = b.mulScalar(request.cotangent(1), 2 / count);
    Value centered = b.sub(x, b.broadcastAlong(op.getMean(), shape, axes));
    gradient = b.mul(centered, b.broadcastAlong(scaled, shape, axes));
  }
  if (request.hasCotangent(0)) {
    Value scaled = b.broadcastAlong(b.mulScalar(request.cotangent(0), 1 / count), shape, axes);
    gradient = gradient ? b.add(gradient, scaled) : scaled;
  }
  return {gradient};
}

// "nn.cumsum": y = running sums of x
// dx = running sums of dy from the other end
// saved: nothing
// accumulates: in the sums
static Value differentiateCumSum(nn::CumSumOp op, Value dy, TensorBuilder &b) {
  return nn::CumSumOp::create(b, dy.getType(), dy, op.getAxis(), op.getExclusive(), !op.getReverse());
}

// "nn.softmax": y = exp(x - max) / sum(exp(x - max))
// dx = y (dy - sum(y dy))
// saved: the result
static Value differentiateSoftmax(nn::SoftmaxOp op, Value dy, TensorBuilder &b) {
  Value y = op.getResult();
  int64_t axis = op.getAxis();
  Value sum = b.sum(b.mul(y, dy), {axis});
  return b.mul(y, b.sub(dy, b.broadcastAlong(sum, TensorBuilder::shapeOf(y), {axis})));
}

// "nn.log_softmax": y = x - max - log(sum(exp(x - max)))
// dx = dy - exp(y) sum(dy)
// saved: the result
static Value differentiateLogSoftmax(nn::LogSoftmaxOp op, Value dy, TensorBuilder &b) {
  Value y = op.getResult();
  int64_t axis = op.getAxis();
  Value sum = b.broadcastAlong(b.sum(dy, {axis}), TensorBuilder::shapeOf(y), {axis});
  return b.sub(dy, b.mul(b.exp(y), sum));
}

void attachReductionRules(MLIRContext *context) {
  attachUnaryRule<nn::ReduceOp, differentiateReduce>(context);
  attachRule<nn::MomentsOp, differentiateMoments>(context);
  attachUnaryRule<nn::CumSumOp, differentiateCumSum>(context);
  attachUnaryRule<nn::SoftmaxOp, differentiateSoftmax>(context);
  attachUnaryRule<nn::LogSoftmaxOp, differentiateLogSoftmax>(context);
}

} // namespace ortc::autodiff
