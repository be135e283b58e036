// Gradients of convolution and pooling.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::autodiff {

// The three members of the convolution family over the window of `op`.
template <typename OpType> static Value convolve(OpType op, Value x, Value w, Value like, TensorBuilder &b) {
  return nn::ConvOp::create(b, like.getType(), x, w, op.getStrides(), op.getPaddingLow(), op.getPaddingHigh(),
                            op.getDilations(), op.getGroups());
}
template <typename OpType>
static Value convolveToInput(OpType op, Value dy, Value w, Value like, TensorBuilder &b) {
  return nn::ConvInputGradOp::create(b, like.getType(), dy, w, op.getStrides(), op.getPaddingLow(),
                                     op.getPaddingHigh(), op.getDilations(), op.getGroups());
}
template <typename OpType>
static Value convolveToFilter(OpType op, Value x, Value dy, Value like, TensorBuilder &b) {
  return nn::ConvFilterGradOp::create(b, like.getType(), x, dy, op.getStrides(), op.getPaddingLow(),
                                      op.getPaddingHigh(), op.getDilations(), op.getGroups());
}

// "nn.conv": y = x * w
// dx = conv_input_grad(dy, w); dw = conv_filter_grad(x, dy)
// saved: each operand, when the other one is differentiated
static Gradients differentiateConv(nn::ConvOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), x = op.getInput(), w = op.getFilter();
  return {request.wants(0) ? Gradient(convolveToInput(op, dy, w, x, b)) : request.unwanted(),
          request.wants(1) ? Gradient(convolveToFilter(op, x, dy, w, b)) : request.unwanted()};
}

// "nn.conv_input_grad": y = the x-gradient of a convolution with filter w and output gradient g; bilinear in g and w
// dg = conv(dy, w); dw = conv_filter_grad(dy, g)
// saved: each operand, when the other one is differentiated
static Gradients differentiateConvInputGrad(nn::ConvInputGradOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), g = op.getGradient(), w = op.getFilter();
  return {request.wants(0) ? Gradient(convolve(op, dy, w, g, b)) : request.unwanted(),
          request.wants(1) ? Gradient(convolveToFilter(op, dy, g, w, b)) : request.unwanted()};
}

// "nn.conv_filter_grad": y = the w-gradient of a convolution with input x and output gradient g; bilinear in x and g.
// Parts of a batch are cut after differentiation.
// dx = conv_input_grad(g, dy); dg = conv(x, dy)
// saved: each operand, when the other one is differentiated
static Gradients differentiateConvFilterGrad(nn::ConvFilterGradOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), x = op.getInput(), g = op.getGradient();
  return {request.wants(0) ? Gradient(convolveToInput(op, g, dy, x, b)) : request.unwanted(),
          request.wants(1) ? Gradient(convolve(op, x, dy, g, b)) : request.unwanted()};
}

// "nn.max_pool": y = the largest element of each window
// dx = max_pool_grad(dy, taps)
// saved: the taps
// special points: the first of equal elements, in row-major order, has it all
// accumulates: in max_pool_grad, where windows overlap
static Gradients differentiateMaxPool(nn::MaxPoolOp op, GradientRequest &request) {
  Value x = op.getInput();
  return {nn::MaxPoolGradOp::create(request.builder, x.getType(), request.cotangent(), op.getTaps(),
                                    op.getWindow(), op.getStrides(), op.getPaddingLow(), op.getPaddingHigh(),
                                    op.getOverhang(), op.getDilations())
              .getResult()};
}

// "nn.max_pool_grad": y = g added up where the taps say
// dg = dy taken where the taps say
// saved: the taps
static Gradients differentiateMaxPoolGrad(nn::MaxPoolGradOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  // Positions are per image and channel: with the spatial dimensions flattened, a gather along the middle one.
  auto flatten = [&](Value value) {
    auto shape = TensorBuilder::shapeOf(value);
    return b.reshape(value, {shape.front(), nn::elementCount(shape.drop_front().drop_back()), shape.back()});
  };
  Value positions =
      b.tapPositions(op.getTaps(), TensorBuilder::shapeOf(op.getResult()).drop_front().drop_back(),
                     op.getWindow(), op.getStrides(), op.getPaddingLow(), op.getDilations());
  Value dy = flatten(request.cotangent()), indices = flatten(positions);
  auto type = RankedTensorType::get(TensorBuilder::shapeOf(indices), TensorBuilder::elementOf(dy));
  Value taken = nn::GatherElementsOp::create(b, type, dy, indices, 1);
  return {b.reshape(taken, TensorBuilder::shapeOf(op.getGradient())), noGradient("taps are integers")};
}

// "nn.avg_pool": y = the mean of each window
// dx = avg_pool_grad(dy)
// saved: nothing
// accumulates: in avg_pool_grad, where windows overlap
static Value differentiateAvgPool(nn::AvgPoolOp op, Value dy, TensorBuilder &b) {
  return nn::AvgPoolGradOp::create(b, op.getInput().getType(), dy, op.getWindow(), op.getStrides(),
                                   op.getPaddingLow(), op.getPaddingHigh(), op.getOverhang(),
                                   op.getDilations(), op.getCountIncludePad());
}

// "nn.avg_pool_grad": y = g spread evenly over its windows
// dg = avg_pool(dy)
// saved: nothing
static Value differentiateAvgPoolGrad(nn::AvgPoolGradOp op, Value dy, TensorBuilder &b) {
  return nn::AvgPoolOp::create(b, op.getGradient().getType(), dy, op.getWindow(), op.getStrides(),
                               op.getPaddingLow(), op.getPaddingHigh(), op.getOverhang(), op.getDilations(),
                               op.getCountIncludePad());
}

void attachSpatialRules(MLIRContext *context) {
  attachRule<nn::ConvOp, differentiateConv>(context);
  attachRule<nn::ConvInputGradOp, differentiateConvInputGrad>(context);
  attachRule<nn::ConvFilterGradOp, differentiateConvFilterGrad>(context);
  attachRule<nn::MaxPoolOp, differentiateMaxPool>(context);
  attachRule<nn::MaxPoolGradOp, differentiateMaxPoolGrad>(context);
  attachUnaryRule<nn::AvgPoolOp, differentiateAvgPool>(context);
  attachUnaryRule<nn::AvgPoolGradOp, differentiateAvgPoolGrad>(context);
}

} // namespace ortc::autodiff
