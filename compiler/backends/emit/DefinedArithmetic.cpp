// Arithmetic without undefined operands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/DefinedArithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::emit {

namespace {

/// Arithmetic on values of one type, scalar or vector.
class Emitter {
public:
  explicit Emitter(ImplicitLocOpBuilder &b) : b(b) {}

  Value constant(Type type, const APInt &value) {
    Attribute number = b.getIntegerAttr(getElementTypeOrSelf(type), value);
    return splat(type, number);
  }
  Value constant(Type type, double value) {
    return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value zero(Type type) { return arith::ConstantOp::create(b, b.getZeroAttr(type)); }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  Value equal(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }

  template <typename Op> Value divide(Op, ValueRange operands) {
    constexpr bool isSigned = std::is_same_v<Op, arith::DivSIOp> || std::is_same_v<Op, arith::RemSIOp>;
    constexpr bool isQuotient = std::is_same_v<Op, arith::DivSIOp> || std::is_same_v<Op, arith::DivUIOp>;
    Value x = operands[0], y = operands[1], none = zero(x.getType());
    unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    Value byZero = equal(y, none), special = byZero, minusOne;
    if (isSigned) {
      minusOne = equal(y, constant(x.getType(), APInt::getAllOnes(width)));
      special = arith::OrIOp::create(b, byZero, minusOne);
    }
    Value result = Op::create(b, x, select(special, constant(x.getType(), APInt(width, 1)), y));
    if (isSigned)
      result = select(minusOne, isQuotient ? arith::SubIOp::create(b, none, x).getResult() : none, result);
    return select(byZero, none, result);
  }

  template <typename Op> Value shift(Op, ValueRange operands) {
    Value x = operands[0], count = operands[1];
    unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    Value most = constant(x.getType(), APInt(width, width - 1));
    Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, count, most);
    Value result = Op::create(b, x, select(fits, count, most));
    return std::is_same_v<Op, arith::ShRSIOp> ? result : select(fits, result, zero(x.getType()));
  }

  Value toInteger(Value x, Type type, bool isSigned) {
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    APInt least = isSigned ? APInt::getSignedMinValue(width) : APInt::getZero(width);
    APInt most = isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
    // Powers of two, so exact: results are in [least, end); for unsigned numbers a fraction above -1 truncates to 0.
    double start = isSigned ? least.signedRoundToDouble() : -1.0,
           end = std::ldexp(1.0, isSigned ? width - 1 : width);
    auto lowPredicate = isSigned ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OLE;
    Value low = compare(lowPredicate, x, constant(x.getType(), start));
    Value high = compare(arith::CmpFPredicate::OGE, x, constant(x.getType(), end));
    Value outside =
        arith::OrIOp::create(b, arith::OrIOp::create(b, low, high), compare(arith::CmpFPredicate::UNO, x, x));
    Value inside = select(outside, zero(x.getType()), x);
    Value result = isSigned ? arith::FPToSIOp::create(b, type, inside).getResult()
                            : arith::FPToUIOp::create(b, type, inside).getResult();
    return select(low, constant(type, least), select(high, constant(type, most), result));
  }

  /// By squaring; 1 / x^-y, truncated, for a negative exponent.
  Value power(Value x, Value y) {
    Type type = x.getType();
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    Value none = zero(type), one = constant(type, APInt(width, 1)),
          minusOne = constant(type, APInt::getAllOnes(width));
    auto loop =
        scf::ForOp::create(b, arith::ConstantIndexOp::create(b, 0), arith::ConstantIndexOp::create(b, width),
                           arith::ConstantIndexOp::create(b, 1), ValueRange{one, x, y});
    auto isOdd = [&](Value number) { return equal(arith::AndIOp::create(b, number, one), one); };
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value result = loop.getRegionIterArgs()[0], base = loop.getRegionIterArgs()[1],
            rest = loop.getRegionIterArgs()[2];
      Value next = select(isOdd(rest), arith::MulIOp::create(b, result, base), result);
      Value squared = arith::MulIOp::create(b, base, base), halved = arith::ShRUIOp::create(b, rest, one);
      scf::YieldOp::create(b, ValueRange{next, squared, halved});
    }
    Value sign = select(isOdd(y), minusOne, one);
    Value inverse = select(equal(x, one), one, select(equal(x, minusOne), sign, none));
    Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, y, none);
    return select(negative, inverse, loop.getResult(0));
  }

  /// x - y * trunc(x / y) by shift and subtract: all differences are exact.
  Value remainder(Value x, Value y) {
    auto vector = dyn_cast<VectorType>(x.getType());
    if (!vector)
      return scalarRemainder(x, y);
    Value lanes = arith::ConstantIndexOp::create(b, vector.getNumElements());
    Value first = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
    auto loop = scf::ForOp::create(b, first, lanes, one, ValueRange{x});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    OpFoldResult lane(loop.getInductionVar());
    Value rest =
        scalarRemainder(vector::ExtractOp::create(b, x, lane), vector::ExtractOp::create(b, y, lane));
    Value next = vector::InsertOp::create(b, rest, loop.getRegionIterArgs()[0], lane);
    scf::YieldOp::create(b, next);
    return loop.getResult(0);
  }

private:
  Value splat(Type type, Attribute number) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, number));
    return arith::ConstantOp::create(b, cast<TypedAttr>(number));
  }

  Value scalarRemainder(Value x, Value y) {
    Type type = x.getType();
    Value infinity = constant(type, std::numeric_limits<double>::infinity());
    Value size = math::AbsFOp::create(b, x), divisor = math::AbsFOp::create(b, y);
    // x infinite, y zero, or one of them NaN: NaN.
    Value defined = arith::AndIOp::create(b, compare(arith::CmpFPredicate::OLT, size, infinity),
                                          compare(arith::CmpFPredicate::OGT, divisor, zero(type)));
    Value start = select(defined, size, zero(type)), step = select(defined, divisor, infinity);
    Value half = constant(type, 0.5);
    // The largest step * 2^k that is not above the start, or one more doubling.
    auto grow = scf::WhileOp::create(
        b, TypeRange{type}, ValueRange{step},
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          Value limit = arith::MulFOp::create(builder, loc, start, half);
          Value more = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, values[0], limit);
          scf::ConditionOp::create(builder, loc, more, values);
        },
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          scf::YieldOp::create(builder, loc,
                               ValueRange{arith::AddFOp::create(builder, loc, values[0], values[0])});
        });
    auto shrink = scf::WhileOp::create(
        b, TypeRange{type, type}, ValueRange{start, grow.getResult(0)},
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          Value more = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, values[0], step);
          scf::ConditionOp::create(builder, loc, more, values);
        },
        [&](OpBuilder &builder, Location loc, ValueRange values) {
          Value fits = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGE, values[0], values[1]);
          Value less = arith::SubFOp::create(builder, loc, values[0], values[1]);
          Value rest = arith::SelectOp::create(builder, loc, fits, less, values[0]);
          Value smaller = arith::MulFOp::create(builder, loc, values[1], half);
          scf::YieldOp::create(builder, loc, ValueRange{rest, smaller});
        });
    Value rest = math::CopySignOp::create(b, shrink.getResult(0), x);
    return select(defined, rest, constant(type, std::numeric_limits<double>::quiet_NaN()));
  }

  ImplicitLocOpBuilder &b;
};

} // namespace

Value emitDefined(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands, Type type) {
  Emitter emitter(b);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
          [&](auto division) { return emitter.divide(division, operands); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [&](auto shift) { return emitter.shift(shift, operands); })
      .Case([&](arith::FPToSIOp) { return emitter.toInteger(operands[0], type, true); })
      .Case([&](arith::FPToUIOp) { return emitter.toInteger(operands[0], type, false); })
      .Case([&](math::IPowIOp) { return emitter.power(operands[0], operands[1]); })
      .Case([&](arith::RemFOp) { return emitter.remainder(operands[0], operands[1]); })
      .Default(Value());
}

} // namespace ortc::emit
