// No division by constants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A division costs ten times a multiplication and cannot be fused with an addition. The product with the rounded
// reciprocal is within 1.5 ulp of the quotient (IEEE 754: both roundings together), within 0.5 ulp for powers of two.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_MULTIPLYBYRECIPROCALSPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// Whether an error of an ulp in the operand may change the result by more than an ulp: at whole numbers.
static bool isStep(Operation *op) {
  return isa<math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp, math::RoundEvenOp, arith::FPToSIOp,
             arith::FPToUIOp, arith::CmpFOp, arith::RemFOp>(op);
}

static bool isElementwiseOrMovement(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::PadOp, nn::ConcatOp,
             nn::ReverseOp, nn::GatherOp, nn::GatherElementsOp>(op);
}

/// Whether elementwise work and movement lead from `value` to a step.
static bool reachesStep(Value value) {
  SmallVector<Value> stack{value};
  llvm::DenseSet<Operation *> seen;
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (isStep(user))
        return true;
      if (isElementwiseOrMovement(user) && seen.insert(user).second)
        llvm::append_range(stack, user->getResults());
    }
  return false;
}

/// 1 / `divisor`, rounded; nothing when the product with it can be far from the quotient.
static std::optional<APFloat> reciprocalOf(const APFloat &divisor) {
  if (!divisor.isFiniteNonZero() || divisor.isDenormal())
    return std::nullopt;
  APFloat result(divisor.getSemantics(), 1);
  result.divide(divisor, APFloat::rmNearestTiesToEven);
  return result.isDenormal() || !result.isFiniteNonZero() ? std::nullopt : std::optional(result);
}

/// The number that all elements of `value` are, through broadcasts and reshapes.
static std::optional<APFloat> constantOf(Value value) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>();
}

namespace {

struct MultiplyByReciprocalsPass : impl::MultiplyByReciprocalsPassBase<MultiplyByReciprocalsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<arith::DivFOp> divisions;
    getOperation()->walk([&](arith::DivFOp op) { divisions.push_back(op); });
    for (arith::DivFOp op : divisions) {
      auto type = dyn_cast<RankedTensorType>(op.getType());
      std::optional<APFloat> divisor = type ? constantOf(op.getRhs()) : std::nullopt;
      std::optional<APFloat> reciprocal = divisor ? reciprocalOf(*divisor) : std::nullopt;
      if (!reciprocal || (!divisor->getExactInverse(nullptr) && reachesStep(op.getResult())))
        continue;
      OpBuilder builder(op);
      Value factor =
          arith::ConstantOp::create(builder, op.getLoc(), SplatElementsAttr::get(type, *reciprocal));
      Value product = arith::MulFOp::create(builder, op.getLoc(), op.getLhs(), factor);
      op.replaceAllUsesWith(product);
      op.erase();
    }
  }
};

} // namespace
} // namespace ortc::simplify
