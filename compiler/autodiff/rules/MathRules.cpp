// Gradients of elementary functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace ortc::autodiff {

static Value bell(Value x, TensorBuilder &b) { return b.exp(b.neg(b.mul(x, x))); }
/// As (1 - x)(1 + x): no cancellation near the ends.
static Value oneMinusSquare(Value x, TensorBuilder &b) {
  return b.mul(b.sub(b.constantLike(x, 1), x), b.addScalar(x, 1));
}

// "math.absf": y = |x|
// dx = dy sign(x)
// saved: the operand
// special points: 0 at 0
static Value differentiateAbsF(math::AbsFOp op, Value dy, TensorBuilder &b) {
  Value x = op.getOperand(), zero = b.zerosLike(x);
  Value negative = b.select(b.compare(arith::CmpFPredicate::OLT, x, zero), b.neg(dy), zero);
  return b.select(b.compare(arith::CmpFPredicate::OGT, x, zero), dy, negative);
}

// "math.exp": y = e^x
// dx = dy y
// saved: the result
static Value differentiateExp(math::ExpOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, op.getResult());
}

// "math.exp2": y = 2^x
// dx = dy y log(2)
// saved: the result
static Value differentiateExp2(math::Exp2Op op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.mulScalar(op.getResult(), M_LN2));
}

// "math.expm1": y = e^x - 1
// dx = dy (y + 1)
// saved: the result
static Value differentiateExpM1(math::ExpM1Op op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.addScalar(op.getResult(), 1));
}

// "math.log": y = log(x)
// dx = dy / x
// saved: the operand
static Value differentiateLog(math::LogOp op, Value dy, TensorBuilder &b) {
  return b.div(dy, op.getOperand());
}

// "math.log2": y = log(x) / log(2)
// dx = dy / (x log(2))
// saved: the operand
static Value differentiateLog2(math::Log2Op op, Value dy, TensorBuilder &b) {
  return b.div(dy, b.mulScalar(op.getOperand(), M_LN2));
}

// "math.log10": y = log(x) / log(10)
// dx = dy / (x log(10))
// saved: the operand
static Value differentiateLog10(math::Log10Op op, Value dy, TensorBuilder &b) {
  return b.div(dy, b.mulScalar(op.getOperand(), M_LN10));
}

// "math.log1p": y = log(1 + x)
// dx = dy / (1 + x)
// saved: the operand
static Value differentiateLog1p(math::Log1pOp op, Value dy, TensorBuilder &b) {
  return b.div(dy, b.addScalar(op.getOperand(), 1));
}

// "math.sqrt": y = x^(1/2)
// dx = dy / (2 y)
// saved: the result
// special points: infinite at 0
static Value differentiateSqrt(math::SqrtOp op, Value dy, TensorBuilder &b) {
  return b.div(dy, b.mulScalar(op.getResult(), 2));
}

// "math.rsqrt": y = x^(-1/2)
// dx = -dy y^3 / 2
// saved: the result
static Value differentiateRsqrt(math::RsqrtOp op, Value dy, TensorBuilder &b) {
  Value y = op.getResult();
  return b.mul(b.mulScalar(dy, -0.5), b.mul(y, b.mul(y, y)));
}

// "math.tanh": y = tanh(x)
// dx = dy (1 - y^2)
// saved: the result
static Value differentiateTanh(math::TanhOp op, Value dy, TensorBuilder &b) {
  Value y = op.getResult();
  return b.mul(dy, b.sub(b.constantLike(y, 1), b.mul(y, y)));
}

// "math.erf": y = erf(x)
// dx = dy 2 / sqrt(pi) e^(-x^2)
// saved: the operand
static Value differentiateErf(math::ErfOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.mulScalar(bell(op.getOperand(), b), M_2_SQRTPI));
}

// "math.erfc": y = 1 - erf(x)
// dx = -dy 2 / sqrt(pi) e^(-x^2)
// saved: the operand
static Value differentiateErfc(math::ErfcOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.mulScalar(bell(op.getOperand(), b), -M_2_SQRTPI));
}

// "math.sin": y = sin(x)
// dx = dy cos(x)
// saved: the operand
static Value differentiateSin(math::SinOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.createOrFold<math::CosOp>(op.getOperand()));
}

// "math.cos": y = cos(x)
// dx = -dy sin(x)
// saved: the operand
static Value differentiateCos(math::CosOp op, Value dy, TensorBuilder &b) {
  return b.neg(b.mul(dy, b.createOrFold<math::SinOp>(op.getOperand())));
}

// "math.tan": y = tan(x)
// dx = dy (1 + y^2)
// saved: the result
static Value differentiateTan(math::TanOp op, Value dy, TensorBuilder &b) {
  Value y = op.getResult();
  return b.mul(dy, b.addScalar(b.mul(y, y), 1));
}

// "math.asin": y = asin(x)
// dx = dy / sqrt(1 - x^2)
// saved: the operand
// special points: infinite at -1 and 1
static Value differentiateAsin(math::AsinOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.rsqrt(oneMinusSquare(op.getOperand(), b)));
}

// "math.acos": y = acos(x)
// dx = -dy / sqrt(1 - x^2)
// saved: the operand
// special points: infinite at -1 and 1
static Value differentiateAcos(math::AcosOp op, Value dy, TensorBuilder &b) {
  return b.neg(b.mul(dy, b.rsqrt(oneMinusSquare(op.getOperand(), b))));
}

// "math.atan": y = atan(x)
// dx = dy / (1 + x^2)
// saved: the operand
static Value differentiateAtan(math::AtanOp op, Value dy, TensorBuilder &b) {
  return b.div(dy, b.addScalar(b.mul(op.getOperand(), op.getOperand()), 1));
}

// "math.sinh": y = sinh(x)
// dx = dy cosh(x)
// saved: the operand
static Value differentiateSinh(math::SinhOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.createOrFold<math::CoshOp>(op.getOperand()));
}

// "math.cosh": y = cosh(x)
// dx = dy sinh(x)
// saved: the operand
static Value differentiateCosh(math::CoshOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.createOrFold<math::SinhOp>(op.getOperand()));
}

// "math.asinh": y = asinh(x)
// dx = dy / sqrt(x^2 + 1)
// saved: the operand
static Value differentiateAsinh(math::AsinhOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.rsqrt(b.addScalar(b.mul(op.getOperand(), op.getOperand()), 1)));
}

// "math.acosh": y = acosh(x)
// dx = dy / sqrt(x^2 - 1)
// saved: the operand
// special points: infinite at 1
static Value differentiateAcosh(math::AcoshOp op, Value dy, TensorBuilder &b) {
  return b.mul(dy, b.rsqrt(b.addScalar(b.mul(op.getOperand(), op.getOperand()), -1)));
}

// "math.atanh": y = atanh(x)
// dx = dy / (1 - x^2)
// saved: the operand
// special points: infinite at -1 and 1
static Value differentiateAtanh(math::AtanhOp op, Value dy, TensorBuilder &b) {
  return b.div(dy, oneMinusSquare(op.getOperand(), b));
}

// "math.atan2": y = the angle of (b, a)
// da = dy b / (a^2 + b^2); db = -dy a / (a^2 + b^2)
// saved: both operands
// special points: 0 at the origin
// accumulates: when a and b are one value
static Gradients differentiateAtan2(math::Atan2Op op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value y = op.getLhs(), x = op.getRhs();
  Value dy = request.cotangent(), square = b.add(b.mul(x, x), b.mul(y, y)), zero = b.zerosLike(x);
  Value isOrigin = b.compare(arith::CmpFPredicate::OEQ, square, zero);
  Value scaled = b.select(isOrigin, zero, b.div(dy, square));
  return {b.mul(scaled, x), b.neg(b.mul(scaled, y))};
}

// "math.copysign": y = |a| with the sign of b
// da = dy where a and b have one sign, -dy elsewhere; b moves nothing between jumps
// saved: the operand and the result
// special points: 0 at 0
static Gradients differentiateCopySign(math::CopySignOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), a = op.getLhs(), zero = b.zerosLike(a);
  Value same = b.compare(arith::CmpFPredicate::OEQ, a, op.getResult());
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, a, zero);
  return {b.select(isZero, zero, b.select(same, dy, b.neg(dy))), noGradient("piecewise constant")};
}

// "math.fma": y = a b + c
// da = dy b; db = dy a; dc = dy
// saved: each factor, when the other one is differentiated
// accumulates: when operands are one value
static Gradients differentiateFma(math::FmaOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  return {request.wants(0) ? b.mul(dy, op.getB()) : request.unwanted(),
          request.wants(1) ? b.mul(dy, op.getA()) : request.unwanted(), dy};
}

/// a^exponent for small integers without powf.
static Value power(Value a, double exponent, TensorBuilder &b) {
  if (exponent == 0)
    return b.constantLike(a, 1);
  if (exponent == 1)
    return a;
  if (exponent == 2)
    return b.mul(a, a);
  return b.pow(a, b.constantLike(a, exponent));
}

// "math.powf": y = a^b
// da = dy b a^(b - 1); db = dy y log(a)
// saved: both operands; the result when b is differentiated
// special points: a = 0: db = 0 (for b >= 0), da = dy for b = 1, 0 above; b = 0: da = 0; a < 0: fine with integral b
// accumulates: when a and b are one value
static Gradients differentiatePow(math::PowFOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent(), base = op.getLhs(), exponent = op.getRhs(), zero = b.zerosLike(base);
  Gradients gradients = {request.unwanted(), request.unwanted()};
  DenseFPElementsAttr constant;
  if (request.wants(0) && matchPattern(exponent, m_Constant(&constant)) && constant.isSplat()) {
    double value = constant.getSplatValue<APFloat>().convertToDouble();
    gradients[0] = value == 0 ? Gradient(zero) : b.mul(dy, b.mulScalar(power(base, value - 1, b), value));
  } else if (request.wants(0)) {
    Value slope = b.mul(exponent, b.pow(base, b.addScalar(exponent, -1)));
    gradients[0] = b.select(b.compare(arith::CmpFPredicate::OEQ, exponent, zero), zero, b.mul(dy, slope));
  }
  if (request.wants(1)) {
    Value isZero = b.logicalAnd(b.compare(arith::CmpFPredicate::OEQ, base, zero),
                                b.compare(arith::CmpFPredicate::OGE, exponent, zero));
    gradients[1] = b.select(isZero, zero, b.mul(dy, b.mul(op.getResult(), b.log(base))));
  }
  return gradients;
}

void attachMathRules(MLIRContext *context) {
  attachUnaryRule<math::AbsFOp, differentiateAbsF>(context);
  attachUnaryRule<math::ExpOp, differentiateExp>(context);
  attachUnaryRule<math::Exp2Op, differentiateExp2>(context);
  attachUnaryRule<math::ExpM1Op, differentiateExpM1>(context);
  attachUnaryRule<math::LogOp, differentiateLog>(context);
  attachUnaryRule<math::Log2Op, differentiateLog2>(context);
  attachUnaryRule<math::Log10Op, differentiateLog10>(context);
  attachUnaryRule<math::Log1pOp, differentiateLog1p>(context);
  attachUnaryRule<math::SqrtOp, differentiateSqrt>(context);
  attachUnaryRule<math::RsqrtOp, differentiateRsqrt>(context);
  attachUnaryRule<math::TanhOp, differentiateTanh>(context);
  attachUnaryRule<math::ErfOp, differentiateErf>(context);
  attachUnaryRule<math::ErfcOp, differentiateErfc>(context);
  attachUnaryRule<math::SinOp, differentiateSin>(context);
  attachUnaryRule<math::CosOp, differentiateCos>(context);
  attachUnaryRule<math::TanOp, differentiateTan>(context);
  attachUnaryRule<math::AsinOp, differentiateAsin>(context);
  attachUnaryRule<math::AcosOp, differentiateAcos>(context);
  attachUnaryRule<math::AtanOp, differentiateAtan>(context);
  attachUnaryRule<math::SinhOp, differentiateSinh>(context);
  attachUnaryRule<math::CoshOp, differentiateCosh>(context);
  attachUnaryRule<math::AsinhOp, differentiateAsinh>(context);
  attachUnaryRule<math::AcoshOp, differentiateAcosh>(context);
  attachUnaryRule<math::AtanhOp, differentiateAtanh>(context);
  attachRule<math::Atan2Op, differentiateAtan2>(context);
  attachRule<math::CopySignOp, differentiateCopySign>(context);
  attachRule<math::FmaOp, differentiateFma>(context);
  attachRule<math::PowFOp, differentiatePow>(context);
  // "math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc": no gradient anywhere.
  math::FloorOp::attachInterface<PiecewiseConstantModel<math::FloorOp>>(*context);
  math::CeilOp::attachInterface<PiecewiseConstantModel<math::CeilOp>>(*context);
  math::RoundOp::attachInterface<PiecewiseConstantModel<math::RoundOp>>(*context);
  math::RoundEvenOp::attachInterface<PiecewiseConstantModel<math::RoundEvenOp>>(*context);
  math::TruncOp::attachInterface<PiecewiseConstantModel<math::TruncOp>>(*context);
}

} // namespace ortc::autodiff
