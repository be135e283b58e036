// Gradients of shape and data movement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::autodiff {

// "nn.broadcast": y repeats x
// dx = sum of dy over the repeated dimensions
// saved: nothing
// accumulates: in the sum
static Value differentiateBroadcast(nn::BroadcastOp op, Value dy, TensorBuilder &b) {
  auto from = TensorBuilder::shapeOf(op.getInput()), to = TensorBuilder::shapeOf(dy);
  SmallVector<bool> kept(to.size(), false);
  for (auto [i, dimension] : llvm::enumerate(op.getDimensions()))
    kept[dimension] = from[i] == to[dimension];
  SmallVector<int64_t> axes;
  for (auto [i, keep] : llvm::enumerate(kept))
    if (!keep)
      axes.push_back(i);
  return b.reshape(b.sum(dy, axes), from); // brings dropped unit dimensions back
}

// "nn.reshape": y = x under another shape
// dx = dy under the shape of x
// saved: nothing
static Value differentiateReshape(nn::ReshapeOp op, Value dy, TensorBuilder &b) {
  return b.reshape(dy, TensorBuilder::shapeOf(op.getInput()));
}

// "nn.transpose": y = x with permuted dimensions
// dx = dy under the inverse permutation
// saved: nothing
static Value differentiateTranspose(nn::TransposeOp op, Value dy, TensorBuilder &b) {
  return b.transpose(dy, nn::invertPermutation(op.getPermutation()));
}

// "nn.slice": y[i] = x[start + i stride]
// dx = dy with zeros before, after and between
// saved: nothing
static Value differentiateSlice(nn::SliceOp op, Value dy, TensorBuilder &b) {
  SmallVector<int64_t> high, interior;
  for (auto [size, start, stride, taken] :
       llvm::zip_equal(TensorBuilder::shapeOf(op.getInput()), op.getStarts(), op.getStrides(),
                       TensorBuilder::shapeOf(dy))) {
    int64_t span = taken == 0 ? 0 : (taken - 1) * stride + 1;
    interior.push_back(stride - 1);
    high.push_back(size - start - span);
  }
  return b.padZeros(dy, op.getStarts(), high, interior);
}

// "nn.pad": y = x with a value around and between its elements
// dx = the elements of dy that stand where x went; dvalue = sum of the others
// saved: nothing
// accumulates: dvalue, in the sum
static Gradients differentiatePad(nn::PadOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  auto shape = TensorBuilder::shapeOf(op.getInput());
  SmallVector<int64_t> strides;
  for (int64_t between : op.getInterior())
    strides.push_back(between + 1);
  Gradients gradients = {b.slice(dy, op.getLow(), shape, strides), request.unwanted()};
  if (request.wants(1)) {
    Value padding = b.pad(b.zerosLike(op.getInput()), b.scalar(TensorBuilder::elementOf(dy), 1), op.getLow(),
                          op.getHigh(), op.getInterior());
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    gradients[1] = b.sum(b.mul(dy, padding), all);
  }
  return gradients;
}

// "nn.concat": y = inputs one after another
// dinput = its part of dy
// saved: nothing
// accumulates: when one value is concatenated twice
static Gradients differentiateConcat(nn::ConcatOp op, GradientRequest &request) {
  Gradients gradients;
  int64_t start = 0, axis = op.getAxis();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    int64_t size = TensorBuilder::shapeOf(input)[axis];
    gradients.push_back(request.wants(i)
                            ? Gradient(request.builder.sliceAxis(request.cotangent(), axis, start, size))
                            : request.unwanted());
    start += size;
  }
  return gradients;
}

// "nn.reverse": y = x backwards along axes
// dx = dy backwards along the same axes
// saved: nothing
static Value differentiateReverse(nn::ReverseOp op, Value dy, TensorBuilder &b) {
  return b.reverse(dy, op.getAxes());
}

// "nn.straight_through": y = value
// dvalue = none; dthrough = dy
// saved: nothing
// special points: none; the gradient is chosen, not derived
static Gradients differentiateStraightThrough(nn::StraightThroughOp, GradientRequest &request) {
  return {noGradient("it all goes to the other operand"), request.cotangent()};
}

void attachMovementRules(MLIRContext *context) {
  nn::DetachOp::attachInterface<PiecewiseConstantModel<nn::DetachOp>>(*context);
  attachUnaryRule<nn::BroadcastOp, differentiateBroadcast>(context);
  attachUnaryRule<nn::ReshapeOp, differentiateReshape>(context);
  attachUnaryRule<nn::TransposeOp, differentiateTranspose>(context);
  attachUnaryRule<nn::SliceOp, differentiateSlice>(context);
  attachRule<nn::PadOp, differentiatePad>(context);
  attachRule<nn::ConcatOp, differentiateConcat>(context);
  attachUnaryRule<nn::ReverseOp, differentiateReverse>(context);
  attachRule<nn::StraightThroughOp, differentiateStraightThrough>(context);
}

} // namespace ortc::autodiff
