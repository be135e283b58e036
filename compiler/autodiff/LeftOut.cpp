// Values that choices of the model leave out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/LeftOut.h"

#include "dialects/nn/Choices.h"
#include "dialects/nn/Elementwise.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::autodiff {

using nn::TensorBuilder;

/// Whether all elements are one number that a product with 0, or a quotient of 0, is 0 for.
static bool isFiniteNumber(Value value, bool isDivisor) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !isa<FloatType>(splat.getElementType()))
    return false;
  APFloat number = splat.getSplatValue<APFloat>();
  return number.isFinite() && !(isDivisor && number.isZero());
}

/// Whether the rule multiplies cotangents by what may not be finite.
static bool multiplies(Operation *op, unsigned operand) {
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return reduce.getKind() == nn::ReduceKind::prod;
  if (isa<nn::MomentsOp, nn::SoftmaxOp, nn::LogSoftmaxOp>(op))
    return true;
  if (!nn::isElementwise(op))
    return false;
  if (isa<arith::MulFOp>(op))
    return !isFiniteNumber(op->getOperand(1 - operand), false);
  if (isa<arith::DivFOp>(op))
    return operand == 1 || !isFiniteNumber(op->getOperand(1), true);
  return !isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::SelectOp,
              math::AbsFOp, math::CopySignOp>(op);
}

/// Whether one is true where the other is false.
static bool areOpposite(Value a, Value c) {
  auto isNegation = [](Value negation, Value of) {
    return matchPattern(negation, m_Op<arith::XOrIOp>(matchers::m_Val(of), m_One()));
  };
  return isNegation(a, c) || isNegation(c, a);
}

/// Whether some element along the axes counts.
Value LeftOut::any(Value mask, ArrayRef<int64_t> axes) {
  Value count = b.reduce(nn::ReduceKind::max, b.cast(mask, b.getF32Type()), axes);
  return b.compare(arith::CmpFPredicate::OGT, count, b.zerosLike(count));
}

/// Elements that count for some result that has a gradient; null where one of these has no mask.
Value LeftOut::maskResults(Operation *op) {
  Value mask;
  for (Value result : op->getResults()) {
    auto found = masks.find(result);
    if (found == masks.end())
      continue;
    if (!found->second)
      return {};
    mask = mask ? b.logicalOr(mask, found->second) : found->second;
  }
  return mask;
}

Value LeftOut::maskOperand(Operation *op, unsigned i) {
  Value mask = maskResults(op), operand = op->getOperand(i);
  if (nn::isChoice(op) && i > 0) {
    Value chosen = i == 1 ? op->getOperand(0) : b.logicalNot(op->getOperand(0));
    return mask ? b.logicalAnd(mask, chosen) : chosen;
  }
  if (!mask)
    return {};
  if (nn::isElementwiseForward(op))
    return mask;
  auto shape = TensorBuilder::shapeOf(operand);
  auto ofRows = [&](int64_t axis) { return b.broadcastAlong(any(mask, {axis}), shape, {axis}); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<nn::ReshapeOp>([&](auto) { return b.reshape(mask, shape); })
      .Case<nn::TransposeOp>([&](auto transpose) {
        return b.transpose(mask, nn::invertPermutation(transpose.getPermutation()));
      })
      .Case<nn::BroadcastOp>([&](auto broadcast) {
        SmallVector<int64_t> repeated =
            nn::freeDimensions(TensorBuilder::rankOf(mask), {}, broadcast.getDimensions());
        for (auto [size, dimension] : llvm::zip_equal(shape, broadcast.getDimensions()))
          if (size != TensorBuilder::shapeOf(mask)[dimension])
            repeated.push_back(dimension);
        llvm::sort(repeated);
        return b.reshape(any(mask, repeated), shape);
      })
      .Case<nn::ReduceOp, nn::MomentsOp>(
          [&](auto reduce) { return b.broadcastAlong(mask, shape, reduce.getAxes()); })
      .Case<nn::SoftmaxOp, nn::LogSoftmaxOp>([&](auto softmax) { return ofRows(softmax.getAxis()); })
      .Default(Value());
}

Value LeftOut::apply(Operation *op, unsigned i, Value mask, Value gradient) {
  return mask && multiplies(op, i) ? b.select(mask, gradient, b.zerosLike(gradient)) : gradient;
}

void LeftOut::addUse(Value value, Value mask, bool isFirst) {
  Value &known = masks[value];
  if (isFirst)
    known = mask;
  else if (known && mask && known != mask)
    known = areOpposite(known, mask) ? Value() : b.logicalOr(known, mask);
  else if (!mask)
    known = {};
}

} // namespace ortc::autodiff
