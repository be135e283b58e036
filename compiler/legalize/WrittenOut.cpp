// Functions that exporters write out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/WrittenOut.h"

#include "compiler/evaluator/HostTensor.h"
#include "compiler/legalize/Formulas.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::legalize {

using nn::TensorBuilder;
using FloatPredicate = arith::CmpFPredicate;

/// The number that all elements of a value are.
static std::optional<double> numberOf(Value value) {
  while (isa_and_nonnull<nn::BroadcastOp, nn::ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  APFloat number = splat.getSplatValue<APFloat>();
  return number.isFinite() ? std::optional(number.convertToDouble()) : std::nullopt;
}

/// The elements of a constant.
static std::optional<evaluator::HostTensor> elementsOf(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto elements = constant ? dyn_cast<ElementsAttr>(constant.getValue()) : ElementsAttr();
  if (!elements)
    return std::nullopt;
  auto tensor = evaluator::HostTensor::fromAttribute(elements);
  return failed(tensor) ? std::nullopt : std::optional(std::move(*tensor));
}

/// Whether `condition` says where x is below (or, with `isAbove`, above) 0; of known numbers it is known, too.
static bool comparesWithZero(Value condition, Value x, bool isAbove) {
  if (auto compare = condition.getDefiningOp<arith::CmpFOp>())
    return compare.getPredicate() == (isAbove ? FloatPredicate::OGT : FloatPredicate::OLT) &&
           compare.getLhs() == x && numberOf(compare.getRhs()) == 0.0;
  auto known = elementsOf(condition), numbers = elementsOf(x);
  if (!known || !numbers || known->size() != numbers->size())
    return false;
  for (int64_t i = 0; i < known->size(); ++i)
    if ((known->getInt(i) != 0) != (isAbove ? numbers->getFloat(i) > 0 : numbers->getFloat(i) < 0))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// Of 1 - x, x.
static Value complementOf(Value value) {
  auto difference = value.getDefiningOp<arith::SubFOp>();
  return difference && numberOf(difference.getLhs()) == 1.0 ? difference.getRhs() : Value();
}

// The larger one, and log1p of what the smaller one is beside it. The gradient of each is its share, which is 1 for
// an infinite one.
static Value logAddExp(TensorBuilder &b, Value a, Value c) {
  Value larger = b.compare(FloatPredicate::OGT, a, c), same = b.compare(FloatPredicate::OEQ, a, c);
  Value apart = b.select(same, b.zerosLike(a), b.neg(b.abs(b.sub(a, c))));
  Value y = b.add(b.select(larger, a, c), b.createOrFold<math::Log1pOp>(b.exp(apart)));
  Value shareOfA = sigmoid(b, b.select(same, b.zerosLike(a), b.sub(a, c)));
  Value shareOfC = b.sub(b.constantLike(a, 1), shareOfA);
  Value through = b.add(b.mul(a, b.detach(shareOfA)), b.mul(c, b.detach(shareOfC)));
  return nn::StraightThroughOp::create(b, y, through);
}

Value logarithm(TensorBuilder &b, Value x) {
  if (Value z = findSigmoid(x))
    return b.neg(softplus(b, b.neg(z)));
  if (Value rest = complementOf(x))
    if (Value z = findSigmoid(rest))
      return b.neg(softplus(b, z));
  if (auto sum = x.getDefiningOp<arith::AddFOp>()) {
    auto left = sum.getLhs().getDefiningOp<math::ExpOp>(), right = sum.getRhs().getDefiningOp<math::ExpOp>();
    if (left && right)
      return logAddExp(b, left.getOperand(), right.getOperand());
    auto first = sum.getLhs().getDefiningOp<math::PowFOp>(),
         second = sum.getRhs().getDefiningOp<math::PowFOp>();
    double base = first && second ? numberOf(first.getLhs()).value_or(0) : 0;
    if (base > 1 && numberOf(second.getLhs()) == base)
      return logAddExp(b, b.mulScalar(first.getRhs(), std::log(base)),
                       b.mulScalar(second.getRhs(), std::log(base)));
  }
  if (auto odds = x.getDefiningOp<arith::DivFOp>(); odds && complementOf(odds.getRhs()) == odds.getLhs()) {
    // Positive wherever there is a logarithm, for -0, too.
    Value slope = b.div(b.constantLike(x, 1), b.abs(b.mul(odds.getLhs(), odds.getRhs())));
    return withSlope(b, odds.getLhs(), b.log(x), slope);
  }
  return b.log(x);
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// Whether x is a variance or a sum of squares, times a number above 0.
static bool isSumOfSquares(Value x) {
  while (Operation *op = x.getDefiningOp()) {
    if (isa<nn::MomentsOp>(op))
      return op->getResult(1) == x;
    if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
      auto square = reduce.getInput().getDefiningOp<arith::MulFOp>();
      return reduce.getKind() == nn::ReduceKind::sum && square && square.getLhs() == square.getRhs();
    }
    bool isScaled = isa<arith::MulFOp, arith::DivFOp>(op) && numberOf(op->getOperand(1)).value_or(0) > 0;
    if (!isScaled &&
        !isa<nn::ReshapeOp, nn::BroadcastOp, nn::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op))
      return false;
    x = op->getOperand(0);
  }
  return false;
}

Value root(TensorBuilder &b, Value x) { return isSumOfSquares(x) ? rootOrZero(b, x) : b.sqrt(x); }

Value rootOfSquares(TensorBuilder &b, Value x, double exponent) {
  if (exponent <= 0 || exponent >= 1 || !isSumOfSquares(x))
    return {};
  if (exponent == 0.5)
    return rootOrZero(b, x);
  Value isZero = b.compare(FloatPredicate::OEQ, x, b.zerosLike(x));
  Value safe = b.select(isZero, b.constantLike(x, 1), x);
  return b.select(isZero, b.zerosLike(x), b.pow(safe, b.constantLike(x, exponent)));
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// The log(x) of max(log(x), -100); null for others.
static math::LogOp boundedLogarithm(Value value) {
  auto larger = value.getDefiningOp<arith::SelectOp>();
  auto logarithm = larger ? larger.getTrueValue().getDefiningOp<math::LogOp>() : nullptr;
  auto rest = larger ? larger.getFalseValue().getDefiningOp<arith::SelectOp>() : nullptr;
  return logarithm && rest && numberOf(rest.getTrueValue()) == -100.0 ? logarithm : nullptr;
}

/// Whether a value is 1 - x, or -x + 1.
static bool isComplement(Value value, Value x) {
  if (complementOf(value) == x)
    return true;
  auto sum = value.getDefiningOp<arith::AddFOp>();
  auto negated = sum ? sum.getLhs().getDefiningOp<arith::NegFOp>() : nullptr;
  return negated && negated.getOperand() == x && numberOf(sum.getRhs()) == 1.0;
}

// (y - 1) max(log(1 - x), -100) - y max(log(x), -100), for a probability x and a label y.
Value subtractWrittenOut(TensorBuilder &b, Value a, Value c) {
  auto missed = a.getDefiningOp<arith::MulFOp>(), hit = c.getDefiningOp<arith::MulFOp>();
  if (!missed || !hit)
    return {};
  auto share = missed.getLhs().getDefiningOp<arith::SubFOp>();
  math::LogOp ofRest = boundedLogarithm(missed.getRhs()), ofX = boundedLogarithm(hit.getRhs());
  if (!share || !ofRest || !ofX || share.getLhs() != hit.getLhs() || numberOf(share.getRhs()) != 1.0 ||
      !isComplement(ofRest.getOperand(), ofX.getOperand()))
    return {};
  Value x = ofX.getOperand(), y = hit.getLhs(), rest = ofRest.getOperand();
  Value divisor = b.mul(rest, x), least = b.constantLike(x, 1e-12);
  divisor = b.select(b.compare(FloatPredicate::OGT, divisor, least), divisor, least);
  Value byX = b.mul(x, b.detach(b.div(b.sub(x, y), divisor)));
  Value byY = b.mul(y, b.detach(b.sub(ofRest.getResult(), ofX.getResult())));
  return nn::StraightThroughOp::create(b, b.sub(a, c), b.add(byX, byY));
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// x < 0 ? (y > 0 ? atan(y / x) + pi : atan(y / x) - pi) : atan(y / x)
static Value findAngle(TensorBuilder &b, Value condition, Value behind, Value front) {
  auto angle = front.getDefiningOp<math::AtanOp>();
  auto quotient = angle ? angle.getOperand().getDefiningOp<arith::DivFOp>() : nullptr;
  auto turned = behind.getDefiningOp<arith::SelectOp>();
  if (!quotient || !turned)
    return {};
  auto up = turned.getTrueValue().getDefiningOp<arith::AddFOp>();
  auto down = turned.getFalseValue().getDefiningOp<arith::SubFOp>();
  auto isHalfTurn = [](Value value) { return std::fabs(numberOf(value).value_or(0) - M_PI) < 1e-6; };
  if (!up || !down || up.getLhs() != front || down.getLhs() != front || !isHalfTurn(up.getRhs()) ||
      !isHalfTurn(down.getRhs()) || !comparesWithZero(condition, quotient.getRhs(), false) ||
      !comparesWithZero(turned.getCondition(), quotient.getLhs(), true))
    return {};
  return b.createOrFold<math::Atan2Op>(quotient.getLhs(), quotient.getRhs());
}

/// a == 0 ? a : isnan(c) ? c : a log(c), whose derivative by a is log(c) at 0, too, and 0 where both are.
static Value findProductWithLogarithm(TensorBuilder &b, Value condition, Value zero, Value other) {
  auto isZero = condition.getDefiningOp<arith::CmpFOp>();
  auto known = other.getDefiningOp<arith::SelectOp>();
  auto product = known ? known.getFalseValue().getDefiningOp<arith::MulFOp>() : nullptr;
  auto logarithm = product ? product.getRhs().getDefiningOp<math::LogOp>() : nullptr;
  if (!isZero || isZero.getPredicate() != FloatPredicate::OEQ || isZero.getLhs() != zero ||
      numberOf(isZero.getRhs()) != 0.0 || !logarithm || product.getLhs() != zero ||
      known.getTrueValue() != logarithm.getOperand())
    return {};
  Value a = zero, c = logarithm.getOperand(), none = b.zerosLike(a);
  Value isNothing = b.logicalAnd(condition, b.compare(FloatPredicate::OLE, c, none));
  Value slope = b.select(isNothing, none, b.detach(logarithm.getResult()));
  Value through = b.add(b.mul(a, slope), b.mul(b.detach(a), logarithm.getResult()));
  return nn::StraightThroughOp::create(b, b.select(condition, a, other), through);
}

Value chooseWrittenOut(TensorBuilder &b, Value condition, Value a, Value c) {
  if (!isa<FloatType>(TensorBuilder::elementOf(a)))
    return {};
  if (Value angle = findAngle(b, condition, a, c))
    return angle;
  return findProductWithLogarithm(b, condition, a, c);
}

Value hiddenScore(TensorBuilder &b, Value score) {
  bool isLowest = numberOf(score).value_or(0) <= -65504; // of float16, and so of the others
  return isLowest ? b.constantLike(score, -std::numeric_limits<double>::infinity()) : score;
}

} // namespace ortc::legalize
