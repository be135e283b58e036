// Short names for float and integer arithmetic on scalars or vectors of one shape.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace ortc::emit {

/// Builds arith ops on values of type `type` (f32 or f64, or a vector of them) and on integers of the same width and
/// shape. `fma` says whether `mad` may fuse.
class FloatBuilder {
public:
  using Value = mlir::Value;

  FloatBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, bool fma)
      : builder(builder), loc(loc), type(type), fma(fma) {}

  bool isDouble() const { return mlir::getElementTypeOrSelf(type).isF64(); }
  unsigned bits() const { return isDouble() ? 64 : 32; }
  unsigned mantissaBits() const { return isDouble() ? 52 : 23; }
  int64_t exponentBias() const { return isDouble() ? 1023 : 127; }
  mlir::Type withElement(mlir::Type element) const {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      return vector.clone(element);
    return element;
  }
  mlir::Type intType() const { return withElement(builder.getIntegerType(bits())); }

  Value constant(double value) {
    return splat(type, builder.getFloatAttr(mlir::getElementTypeOrSelf(type), value));
  }
  Value integer(int64_t value) {
    mlir::Type element = builder.getIntegerType(bits());
    return splat(intType(), builder.getIntegerAttr(element, mlir::APInt(bits(), value, true, true)));
  }
  Value add(Value a, Value b) { return mlir::arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return mlir::arith::DivFOp::create(builder, loc, a, b); }
  Value neg(Value a) { return mlir::arith::NegFOp::create(builder, loc, a); }
  Value abs(Value a) { return mlir::math::AbsFOp::create(builder, loc, a); }
  Value sqrt(Value a) { return mlir::math::SqrtOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) {
    return mlir::math::CopySignOp::create(builder, loc, magnitude, sign);
  }
  /// a * b + c.
  Value mad(Value a, Value b, Value c) {
    return fma ? mlir::math::FmaOp::create(builder, loc, a, b, c).getResult() : add(mul(a, b), c);
  }
  Value less(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OLT, a, b); }
  Value greater(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OGT, a, b); }
  Value equal(Value a, Value b) { return compare(mlir::arith::CmpFPredicate::OEQ, a, b); }
  Value isNan(Value a) { return compare(mlir::arith::CmpFPredicate::UNO, a, a); }
  Value lessSigned(Value a, Value b) { ///< of integers
    return mlir::arith::CmpIOp::create(builder, loc, mlir::arith::CmpIPredicate::slt, a, b);
  }
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return mlir::arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// Limits a to [low, high]; NaN stays NaN.
  Value clamp(Value a, double low, double high) {
    Value l = constant(low), h = constant(high);
    a = select(less(a, l), l, a);
    return select(greater(a, h), h, a);
  }

  Value toBits(Value a) { return mlir::arith::BitcastOp::create(builder, loc, intType(), a); }
  Value fromBits(Value a) { return mlir::arith::BitcastOp::create(builder, loc, type, a); }
  Value iadd(Value a, Value b) { return mlir::arith::AddIOp::create(builder, loc, a, b); }
  Value isub(Value a, Value b) { return mlir::arith::SubIOp::create(builder, loc, a, b); }
  Value iand(Value a, Value b) { return mlir::arith::AndIOp::create(builder, loc, a, b); }
  Value ior(Value a, Value b) { return mlir::arith::OrIOp::create(builder, loc, a, b); }
  Value ixor(Value a, Value b) { return mlir::arith::XOrIOp::create(builder, loc, a, b); }
  Value shiftLeft(Value a, int64_t n) { return mlir::arith::ShLIOp::create(builder, loc, a, integer(n)); }
  Value shiftRight(Value a, int64_t n) { return mlir::arith::ShRUIOp::create(builder, loc, a, integer(n)); }
  Value shiftRightSigned(Value a, int64_t n) {
    return mlir::arith::ShRSIOp::create(builder, loc, a, integer(n));
  }
  Value iequal(Value a, Value b) {
    return mlir::arith::CmpIOp::create(builder, loc, mlir::arith::CmpIPredicate::eq, a, b);
  }
  /// Conjunction and disjunction of conditions.
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(builder, loc, a, b); }
  Value either(Value a, Value b) { return mlir::arith::OrIOp::create(builder, loc, a, b); }

  /// Polynomial with coefficients from the lowest power, by Horner's rule.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double c : llvm::reverse(coefficients.drop_back()))
      sum = mad(sum, x, constant(c));
    return sum;
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type;
  bool fma;

private:
  Value splat(mlir::Type shape, mlir::TypedAttr scalar) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(shape))
      return mlir::arith::ConstantOp::create(builder, loc, mlir::DenseElementsAttr::get(vector, scalar));
    return mlir::arith::ConstantOp::create(builder, loc, scalar);
  }
};

} // namespace ortc::emit
