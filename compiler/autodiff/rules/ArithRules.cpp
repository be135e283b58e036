// Gradients of elementwise arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::autodiff {

// "arith.addf": y = a + b
// da = dy; db = dy
// saved: nothing
// accumulates: when a and b are one value
static Gradients differentiateAdd(arith::AddFOp, GradientRequest &request) {
  return {request.cotangent(), request.cotangent()};
}

// "arith.subf": y = a - b
// da = dy; db = -dy
// saved: nothing
// accumulates: when a and b are one value
static Gradients differentiateSub(arith::SubFOp, GradientRequest &request) {
  Value dy = request.cotangent();
  return {dy, request.wants(1) ? request.builder.neg(dy) : request.unwanted()};
}

// "arith.mulf": y = a b
// da = dy b; db = dy a
// saved: each operand, when the other one is differentiated
// special points: 0 times infinity is NaN, as in the forward direction
// accumulates: when a and b are one value
static Gradients differentiateMul(arith::MulFOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  return {request.wants(0) ? b.mul(dy, op.getRhs()) : request.unwanted(),
          request.wants(1) ? b.mul(dy, op.getLhs()) : request.unwanted()};
}

// "arith.divf": y = a / b
// da = dy / b; db = -dy (y / b)
// saved: b; the result when b is differentiated
// special points: infinite at b = 0, NaN where a is 0 too
// accumulates: when a and b are one value
static Gradients differentiateDiv(arith::DivFOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  return {request.wants(0) ? b.div(dy, op.getRhs()) : request.unwanted(),
          request.wants(1) ? b.neg(b.mul(dy, b.div(op.getResult(), op.getRhs()))) : request.unwanted()};
}

// "arith.remf": y = a - trunc(a / b) b
// da = dy; db = -dy trunc(a / b)
// saved: both operands and the result when b is differentiated
// special points: at jumps, the gradient beside them; trunc(a / b) where there is no remainder: infinite b or a, b = 0
// accumulates: when a and b are one value
static Gradients differentiateRem(arith::RemFOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  if (!request.wants(1))
    return {dy, request.unwanted()};
  // (a - y) / b is an integer up to rounding, which division and truncation alone would miss near jumps.
  Value y = op.getResult(), quotient = b.div(b.sub(op.getLhs(), y), op.getRhs());
  quotient = b.select(b.compare(arith::CmpFPredicate::UNO, y, y),
                      b.createOrFold<math::TruncOp>(b.div(op.getLhs(), op.getRhs())),
                      b.createOrFold<math::RoundEvenOp>(quotient));
  return {dy, b.neg(b.mul(dy, quotient))};
}

// "arith.negf": y = -a
// da = -dy
// saved: nothing
static Value differentiateNeg(arith::NegFOp, Value dy, TensorBuilder &b) { return b.neg(dy); }

// "arith.extf", "arith.truncf": y = a in another floating-point type
// da = dy in the type of a
// saved: nothing
// special points: passes unchanged where rounding or overflow happened
template <typename CastOp> static Value differentiateCast(CastOp op, Value dy, TensorBuilder &b) {
  return b.cast(dy, TensorBuilder::elementOf(op.getIn()));
}

// "arith.select": y = condition ? a : b
// da = condition ? dy : 0; db = condition ? 0 : dy
// saved: the condition
// special points: decides kinks and ties of everything built as compare and select: the side that was taken has it all
// accumulates: when a and b are one value
static Gradients differentiateSelect(arith::SelectOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), zeros = b.zerosLike(dy);
  return {noGradient("the condition is no number"),
          request.wants(1) ? b.select(op.getCondition(), dy, zeros) : request.unwanted(),
          request.wants(2) ? b.select(op.getCondition(), zeros, dy) : request.unwanted()};
}

void attachArithRules(MLIRContext *context) {
  attachRule<arith::AddFOp, differentiateAdd>(context);
  attachRule<arith::SubFOp, differentiateSub>(context);
  attachRule<arith::MulFOp, differentiateMul>(context);
  attachRule<arith::DivFOp, differentiateDiv>(context);
  attachRule<arith::RemFOp, differentiateRem>(context);
  attachRule<arith::SelectOp, differentiateSelect>(context);
  attachUnaryRule<arith::NegFOp, differentiateNeg>(context);
  attachUnaryRule<arith::ExtFOp, differentiateCast<arith::ExtFOp>>(context);
  attachUnaryRule<arith::TruncFOp, differentiateCast<arith::TruncFOp>>(context);
}

} // namespace ortc::autodiff
