// Gradients of gathers and scatters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

using namespace mlir;

namespace ortc::autodiff {

static constexpr llvm::StringLiteral kIndices = "indices are integers";

// "nn.gather": y = slices of x taken at indices
// dx = dy added up at the indices
// saved: the indices
// special points: repeated indices add up
// accumulates: in scatter_add
static Gradients differentiateGather(nn::GatherOp op, GradientRequest &request) {
  Value dx = nn::ScatterAddOp::create(request.builder, op.getInput().getType(), op.getIndices(),
                                      request.cotangent(), op.getAxis());
  return {dx, noGradient(kIndices)};
}

// "nn.scatter_add": y = updates added up at indices
// dupdates = dy taken at the indices
// saved: the indices
static Gradients differentiateScatterAdd(nn::ScatterAddOp op, GradientRequest &request) {
  Value du = nn::GatherOp::create(request.builder, op.getUpdates().getType(), request.cotangent(),
                                  op.getIndices(), op.getAxis());
  return {noGradient(kIndices), du};
}

// "nn.gather_elements": y = elements of x taken at indices
// dx = dy added up at the indices
// saved: the indices
// special points: repeated indices add up
// accumulates: in scatter_elements add
static Gradients differentiateGatherElements(nn::GatherElementsOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value x = op.getInput();
  Value dx = nn::ScatterElementsOp::create(b, x.getType(), nn::ScatterMode::add, b.zerosLike(x),
                                           op.getIndices(), request.cotangent(), op.getAxis());
  return {dx, noGradient(kIndices)};
}

namespace {

/// Gathers and scatters with the indices of one scatter_elements.
struct Elements {
  nn::ScatterElementsOp op;
  TensorBuilder &b;

  Value take(Value x) {
    auto type = RankedTensorType::get(TensorBuilder::shapeOf(op.getIndices()), TensorBuilder::elementOf(x));
    return nn::GatherElementsOp::create(b, type, x, op.getIndices(), op.getAxis());
  }
  Value put(nn::ScatterMode mode, Value x, Value updates) {
    return nn::ScatterElementsOp::create(b, x.getType(), mode, x, op.getIndices(), updates, op.getAxis());
  }
  /// 1 where the condition holds, 0 elsewhere.
  Value indicate(Value condition) { return b.cast(condition, TensorBuilder::elementOf(op.getInput())); }
};

} // namespace

/// mode mul: the input gets dy times all updates of its place. An update gets dy times the input and the
/// other updates of its place: their product divided by it; where an update is zero, the product without
/// zeros if it is the only one, and where another one is, 0.
static Gradients differentiateScatterMul(nn::ScatterElementsOp op, Value dy, TensorBuilder &b) {
  Elements at{op, b};
  Value updates = op.getUpdates(), zero = b.zerosLike(updates), one = b.constantLike(updates, 1);
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, updates, zero);
  Value filled = b.select(isZero, one, updates);
  Value product = at.take(at.put(nn::ScatterMode::mul, op.getInput(), filled));
  Value zeros = at.take(at.put(nn::ScatterMode::add, b.zerosLike(op.getInput()), at.indicate(isZero)));
  Value alone = b.compare(arith::CmpFPredicate::OEQ, zeros, at.indicate(isZero));
  Value others = b.select(alone, b.div(product, filled), zero);
  return {at.put(nn::ScatterMode::mul, dy, updates), noGradient(kIndices), b.mul(at.take(dy), others)};
}

/// modes max and min: all that equal the result share evenly.
static Gradients differentiateScatterExtreme(nn::ScatterElementsOp op, Value dy, TensorBuilder &b) {
  Elements at{op, b};
  Value input = op.getInput(), updates = op.getUpdates(), y = op.getResult();
  Value inputIs = b.compare(arith::CmpFPredicate::OEQ, input, y);
  Value updateIs = b.compare(arith::CmpFPredicate::OEQ, updates, at.take(y));
  Value count = at.put(nn::ScatterMode::add, at.indicate(inputIs), at.indicate(updateIs));
  Value share = b.div(dy, count);
  return {b.select(inputIs, share, b.zerosLike(input)), noGradient(kIndices),
          b.select(updateIs, at.take(share), b.zerosLike(updates))};
}

// "nn.scatter_elements": y = x with updates set, added, multiplied or compared in at indices
// set: dx = dy with zeros at the indices, dupdates = dy at the indices; add: dx = dy, dupdates likewise; others above
// saved: the indices; mul: both operands; max and min: both operands and the result
// special points: set: with repeated indices every update gets dy of its place; max and min: equal values share evenly
static Gradients differentiateScatterElements(nn::ScatterElementsOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Elements at{op, b};
  Value dy = request.cotangent();
  switch (op.getMode()) {
  case nn::ScatterMode::set:
    return {at.put(nn::ScatterMode::set, dy, b.zerosLike(op.getUpdates())), noGradient(kIndices),
            at.take(dy)};
  case nn::ScatterMode::add:
    return {dy, noGradient(kIndices), at.take(dy)};
  case nn::ScatterMode::mul:
    return differentiateScatterMul(op, dy, b);
  case nn::ScatterMode::max:
  case nn::ScatterMode::min:
    return differentiateScatterExtreme(op, dy, b);
  }
  llvm_unreachable("a scatter mode is one of five");
}

void attachIndexingRules(MLIRContext *context) {
  attachRule<nn::GatherOp, differentiateGather>(context);
  attachRule<nn::ScatterAddOp, differentiateScatterAdd>(context);
  attachRule<nn::GatherElementsOp, differentiateGatherElements>(context);
  attachRule<nn::ScatterElementsOp, differentiateScatterElements>(context);
}

} // namespace ortc::autodiff
