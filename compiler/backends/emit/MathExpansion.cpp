// Elementary functions as multiplications, additions, divisions, square roots and integer operations.
// Methods: Cody-Waite reduction for exp and the trigonometric functions, the s = f / (2 + f) series of fdlibm for
// logarithms, least-squares polynomials of our own (MathCoefficients.h). Nothing here is contracted or reassociated
// later, so results are the same bits on every target, up to `fma`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/MathExpansion.h"

#include "compiler/backends/emit/FloatBuilder.h"
#include "compiler/backends/emit/MathCoefficients.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::emit {

using namespace kernels;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kPi = 3.14159265358979323846;
/// The least float whose exp is a normal number: ln 2^-126, ln 2^-1022, rounded up.
constexpr double kExpOfNormalF32 = -0x1.5d589ep+6, kExpOfNormalF64 = -0x1.6232bdd7abcd2p+9;

/// The expansions; `F` in names of members is omitted, everything is on values of `FloatBuilder::type`.
class Expander : public FloatBuilder {
public:
  Expander(OpBuilder &builder, Location loc, Type type, const MathOptions &options)
      : FloatBuilder(builder, loc, type, options.fma), options(options) {}

  Value expand(MathFunction function, ValueRange x);

private:
  /// An integral float, and an integer that is equal to it in its lowest bits (f32: 22, f64: 51).
  struct Integral {
    Value asFloat, lowBits;
  };
  /// exp(x) = (1 + tail) * 2^n.
  struct ExpParts {
    Value tail;
    Integral n;
  };
  /// x = 2^k * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)].
  struct LogParts {
    Value f, kFloat;
  };
  /// |argument| reduced to r in [-pi/4, pi/4] and the quadrant.
  struct Quadrant {
    Value r, n;
  };

  ArrayRef<double> table(ArrayRef<double> single, ArrayRef<double> dbl) { return isDouble() ? dbl : single; }

  /// The sign of zero survives.
  Value keepZero(Value x, Value result) { return select(equal(x, constant(0)), x, result); }
  Integral nearest(Value x, double factor);
  Value scale(Value x, const Integral &n);
  Value scaleBySteps(Value x, Value n);
  ExpParts expParts(Value x);
  /// `isFlushed`: zero where the result is subnormal.
  Value exp(Value x, bool isFlushed = false);
  Value exp2(Value x);
  Value expm1(Value x);
  /// exp(x) / 2, which does not overflow where exp does.
  Value halfExp(Value x);

  LogParts logParts(Value x);
  Value logSeries(const LogParts &parts, Value correction);
  Value logSpecial(Value x, Value result);
  Value log(Value x) { return logSpecial(x, logSeries(logParts(x), Value())); }
  Value logOfBase(Value x, double perUnit, double exponentHigh, double exponentLow);
  Value log1p(Value x);

  Value tanh(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  Value erf(Value x);

  Quadrant reduceQuadrant(Value x);
  Quadrant reduceQuadrantDouble(Value x);
  Value sinPoly(Value r);
  Value cosPoly(Value r);
  Value sinOfQuadrant(const Quadrant &q, int64_t shift);
  Value sin(Value x) { return keepZero(x, sinOfQuadrant(reduceQuadrant(x), 0)); }
  Value cos(Value x) { return sinOfQuadrant(reduceQuadrant(x), 1); }
  Value tan(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);
  Value asinSeries(Value magnitude, Value &isLarge);
  Value asin(Value x);
  Value acos(Value x);

  Value pow(Value x, Value y);
  Value powMagnitude(Value x, Value y);

  Value rounded(MathFunction function, Value x);

  const MathOptions &options;
};

} // namespace

/// The integer nearest to x * factor, where that is below 2^22 (f32) or 2^51 (f64): adding 1.5 * 2^mantissa
/// leaves it in the low bits.
Expander::Integral Expander::nearest(Value x, double factor) {
  Value magic = constant(isDouble() ? 0x1.8p52 : 0x1.8p23);
  Value shifted = factor == 1 ? add(x, magic) : mad(x, constant(factor), magic);
  return {sub(shifted, magic), toBits(shifted)};
}

/// x * 2^n for integers |n| < 2 * bias, rounded once where the result is subnormal.
Value Expander::scale(Value x, const Integral &n) {
  Value scaled = options.scaling ? options.scaling->emitScaling(builder, loc, x, n.asFloat) : Value();
  return scaled ? scaled : scaleBySteps(x, n.lowBits);
}

/// Two factors that are normal numbers: 2^floor(n / 2), and 2 to the rest.
Value Expander::scaleBySteps(Value x, Value n) {
  Value one = integer(exponentBias() << mantissaBits());
  Value power = shiftLeft(n, mantissaBits());
  Value half = iand(shiftRightSigned(power, 1), integer(-(int64_t(1) << mantissaBits())));
  Value rest = isub(power, half);
  return mul(mul(x, fromBits(iadd(half, one))), fromBits(iadd(rest, one)));
}

/// For x in the clamped range of exp: r = x - n ln 2 with ln 2 in two parts, the first short enough for n * high to be
/// exact.
Expander::ExpParts Expander::expParts(Value x) {
  Integral n = nearest(x, 1 / kLn2);
  double high = isDouble() ? 6.93147180369123816490e-01 : 0.693359375;
  double low = isDouble() ? 1.90821492927058770002e-10 : -2.12194440054690583e-4;
  Value r = mad(n.asFloat, constant(-high), x);
  r = mad(n.asFloat, constant(-low), r);
  Value p = polynomial(r, table(coefficients::kExpF32, coefficients::kExpF64));
  return {mad(mul(r, r), p, r), n};
}

Value Expander::exp(Value x, bool isFlushed) {
  double least = isFlushed ? (isDouble() ? kExpOfNormalF64 : kExpOfNormalF32) : isDouble() ? -746 : -104;
  ExpParts parts = expParts(clamp(x, least, isDouble() ? 710 : 89));
  Value result = scale(add(parts.tail, constant(1)), parts.n);
  return isFlushed ? select(less(x, constant(least)), constant(0), result) : result;
}

Value Expander::halfExp(Value x) {
  x = isDouble() ? clamp(x, -746, 711) : clamp(x, -104, 90);
  ExpParts parts = expParts(x);
  Integral lower = {sub(parts.n.asFloat, constant(1)), isub(parts.n.lowBits, integer(1))};
  return scale(add(parts.tail, constant(1)), lower);
}

Value Expander::exp2(Value x) {
  double least = options.flushesExp ? (isDouble() ? -1022 : -126) : isDouble() ? -1076 : -151;
  Value limited = clamp(x, least, isDouble() ? 1025 : 129);
  Integral n = nearest(limited, 1);
  Value r = mul(sub(limited, n.asFloat), constant(kLn2));
  Value p = polynomial(r, table(coefficients::kExpF32, coefficients::kExpF64));
  Value result = scale(add(mad(mul(r, r), p, r), constant(1)), n);
  return options.flushesExp ? select(less(x, constant(least)), constant(0), result) : result;
}

/// 2^n tail + (2^n - 1), halved while 2^n could overflow. Keeps the sign of zero.
Value Expander::expm1(Value x) {
  Value limited = isDouble() ? clamp(x, -40, 710) : clamp(x, -20, 89);
  ExpParts parts = expParts(limited);
  Value half = fromBits(shiftLeft(iadd(parts.n.lowBits, integer(exponentBias() - 1)), mantissaBits()));
  Value result = mad(half, parts.tail, sub(half, constant(0.5)));
  return keepZero(x, add(result, result));
}

/// Splits a positive number; subnormals are scaled up first.
Expander::LogParts Expander::logParts(Value x) {
  double smallest = isDouble() ? 0x1p-1022 : 0x1p-126;
  double up = isDouble() ? 0x1p54 : 0x1p25;
  Value isSmall = less(x, constant(smallest));
  Value bitsOfX = toBits(select(isSmall, mul(x, constant(up)), x));
  // Adding (1 - sqrt(1/2)) to the bits makes the exponent that of the range [sqrt(1/2), sqrt(2)).
  int64_t one = exponentBias() << mantissaBits();
  int64_t sqrtHalf = isDouble() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value biased = iadd(bitsOfX, integer(one - sqrtHalf));
  Value k = isub(shiftRight(biased, mantissaBits()), integer(exponentBias()));
  Value mantissa = iadd(iand(biased, integer((int64_t(1) << mantissaBits()) - 1)), integer(sqrtHalf));
  // Small integers become floats in the low bits of 1.5 * 2^mantissa: few vectors have a conversion from i64.
  Value magic = constant(isDouble() ? 0x1.8p52 : 0x1.8p23);
  Value kFloat = sub(fromBits(iadd(k, toBits(magic))), magic);
  kFloat = select(isSmall, sub(kFloat, constant(isDouble() ? 54 : 25)), kFloat);
  return {sub(fromBits(mantissa), constant(1)), kFloat};
}

/// log(2^k (1 + f)) + correction (a small term, may be null).
Value Expander::logSeries(const LogParts &parts, Value correction) {
  double high = isDouble() ? 6.93147180369123816490e-01 : 6.9313812256e-01;
  double low = isDouble() ? 1.90821492927058770002e-10 : 9.0580006145e-06;
  Value f = parts.f;
  Value s = div(f, add(f, constant(2)));
  Value z = mul(s, s);
  Value tail = mul(z, polynomial(z, table(coefficients::kLogF32, coefficients::kLogF64)));
  Value halfSquare = mul(mul(f, f), constant(0.5));
  Value lowPart = mul(parts.kFloat, constant(low));
  if (correction)
    lowPart = add(lowPart, correction);
  // s (f^2/2 + tail) is log(1 + f) - f + f^2/2.
  Value rest = mad(s, add(halfSquare, tail), lowPart);
  return mad(parts.kFloat, constant(high), sub(f, sub(halfSquare, rest)));
}

/// Puts in what a logarithm is at zero, below zero, at infinity and NaN.
Value Expander::logSpecial(Value x, Value result) {
  Value infinity = constant(kInfinity);
  result = select(equal(x, infinity), infinity, result);
  result = select(equal(x, constant(0)), constant(-kInfinity), result);
  result = select(less(x, constant(0)), constant(kNan), result);
  return select(isNan(x), x, result);
}

/// k * (high + low) + perUnit * log(1 + f).
Value Expander::logOfBase(Value x, double perUnit, double exponentHigh, double exponentLow) {
  LogParts parts = logParts(x);
  Value fraction = logSeries({parts.f, constant(0)}, Value());
  Value low = mad(parts.kFloat, constant(exponentLow), mul(fraction, constant(perUnit)));
  return logSpecial(x, mad(parts.kFloat, constant(exponentHigh), low));
}

/// log(u) for u = 1 + x rounded, plus (x - (u - 1)) / u. Where u is near one, f = x itself.
Value Expander::log1p(Value x) {
  Value u = add(x, constant(1));
  LogParts parts = logParts(u);
  Value isNear = equal(parts.kFloat, constant(0));
  // The smaller of the two is exact: u - x loses 1 where x is large, u - 1 loses x where it is small.
  Value lost = select(less(u, constant(2)), sub(x, sub(u, constant(1))), sub(constant(1), sub(u, x)));
  Value correction = select(isNear, constant(0), div(lost, u));
  parts.f = select(isNear, x, parts.f);
  return keepZero(x, logSpecial(u, logSeries(parts, correction)));
}

/// t / (t + 2) with t = expm1(2 |x|).
Value Expander::tanh(Value x) {
  Value magnitude = clamp(abs(x), 0, 22);
  Value t = expm1(add(magnitude, magnitude));
  return copySign(div(t, add(t, constant(2))), x);
}

Value Expander::sinh(Value x) {
  Value magnitude = abs(x);
  Value half = halfExp(magnitude);
  Value large = sub(half, div(constant(0.25), half));
  Value t = expm1(clamp(magnitude, 0, 1));
  Value small = mul(constant(0.5), add(t, div(t, add(t, constant(1)))));
  return copySign(select(less(magnitude, constant(1)), small, large), x);
}

Value Expander::cosh(Value x) {
  Value half = halfExp(abs(x));
  return add(half, div(constant(0.25), half));
}

/// log1p(x + x^2 / (1 + sqrt(x^2 + 1))); log(2x) where the square would overflow or lose everything.
Value Expander::asinh(Value x) {
  Value magnitude = abs(x);
  double limit = isDouble() ? 0x1p28 : 0x1p13;
  Value limited = clamp(magnitude, 0, limit);
  Value square = mul(limited, limited);
  Value small = log1p(add(limited, div(square, add(sqrt(add(square, constant(1))), constant(1)))));
  Value large = add(log(magnitude), constant(kLn2));
  return copySign(select(greater(magnitude, constant(limit)), large, small), x);
}

Value Expander::acosh(Value x) {
  double limit = isDouble() ? 0x1p28 : 0x1p13;
  Value t = sub(clamp(x, -kInfinity, limit), constant(1));
  Value small = log1p(add(t, sqrt(mad(t, t, add(t, t)))));
  small = select(less(x, constant(1)), constant(kNan), small);
  Value large = add(log(x), constant(kLn2));
  return select(greater(x, constant(limit)), large, small);
}

Value Expander::atanh(Value x) {
  Value magnitude = abs(x);
  Value t = div(add(magnitude, magnitude), sub(constant(1), magnitude));
  // Above one t is negative and below -2: log1p gives NaN, as it should.
  Value result = mul(constant(0.5), log1p(t));
  return copySign(result, x);
}

/// |x| < 2: x P(x^2 - 2). Above: a polynomial around a point of the range that is left
/// until erf rounds to one.
Value Expander::erf(Value x) {
  Value magnitude = abs(x);
  Value small = mul(
      x, polynomial(mad(x, x, constant(-2)), table(coefficients::kErfSmallF32, coefficients::kErfSmallF64)));
  Value large = polynomial(sub(magnitude, constant(isDouble() ? 4 : 3)),
                           table(coefficients::kErfLargeF32, coefficients::kErfLargeF64));
  large = select(greater(magnitude, constant(isDouble() ? 5.93 : 3.93)), constant(1), large);
  return select(less(magnitude, constant(2)), small, copySign(large, x));
}

/// f64: pi/2 in three parts of 33 bits, exact products up to n = 2^20 (fdlibm's constants).
Expander::Quadrant Expander::reduceQuadrantDouble(Value x) {
  Integral n = nearest(x, 2 / kPi);
  Value r = x;
  // Products of the first parts are exact, fused or not.
  for (double part : {1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624871116645580e-21,
                      8.47842766036889956997e-32})
    r = sub(r, mul(n.asFloat, constant(part)));
  // Beyond what the parts can do the remainder means nothing; keep it where the polynomials are bounded.
  Value bounded = less(abs(r), constant(1));
  Value isFinite = less(abs(x), constant(kInfinity));
  r = select(bounded, r, select(isFinite, constant(0), constant(kNan)));
  return {r, n.lowBits};
}

/// f32 reduces in f64: exact enough next to every multiple of pi/2 up to 2^20, and still right to 1e-4 at 2^40.
Expander::Quadrant Expander::reduceQuadrant(Value x) {
  if (isDouble())
    return reduceQuadrantDouble(x);
  Expander wide(builder, loc, withElement(builder.getF64Type()), options);
  Value extended = arith::ExtFOp::create(builder, loc, wide.type, x);
  Quadrant q = wide.reduceQuadrantDouble(extended);
  return {arith::TruncFOp::create(builder, loc, type, q.r),
          arith::TruncIOp::create(builder, loc, intType(), q.n)};
}

Value Expander::sinPoly(Value r) {
  Value z = mul(r, r);
  Value p = polynomial(z, table(coefficients::kSinF32, coefficients::kSinF64));
  return mad(mul(z, r), p, r);
}

Value Expander::cosPoly(Value r) {
  Value z = mul(r, r);
  Value p = polynomial(z, table(coefficients::kCosF32, coefficients::kCosF64));
  // 1 - z/2 first, then what that subtraction lost.
  Value half = mul(z, constant(0.5));
  Value w = sub(constant(1), half);
  Value lost = sub(sub(constant(1), w), half);
  return add(w, mad(mul(z, z), p, lost));
}

/// sin(r + (n + shift) pi / 2).
Value Expander::sinOfQuadrant(const Quadrant &q, int64_t shift) {
  Value n = shift ? iadd(q.n, integer(shift)) : q.n;
  Value isOdd = iequal(iand(n, integer(1)), integer(1));
  Value value = select(isOdd, cosPoly(q.r), sinPoly(q.r));
  Value sign = shiftLeft(iand(n, integer(2)), bits() - 2);
  return fromBits(ixor(toBits(value), sign));
}

Value Expander::tan(Value x) {
  Quadrant q = reduceQuadrant(x);
  Value s = sinPoly(q.r), c = cosPoly(q.r);
  Value isOdd = iequal(iand(q.n, integer(1)), integer(1));
  return keepZero(x, div(select(isOdd, neg(c), s), select(isOdd, s, c)));
}

/// One division for all three ranges: x, (x - 1) / (x + 1) plus pi/4, -1 / x plus pi/2.
Value Expander::atan(Value x) {
  Value magnitude = abs(x);
  Value isMiddle = greater(magnitude, constant(std::sqrt(2.0) - 1));
  Value isLarge = greater(magnitude, constant(std::sqrt(2.0) + 1));
  Value one = constant(1);
  Value numerator = select(isLarge, constant(-1), select(isMiddle, sub(magnitude, one), magnitude));
  Value denominator = select(isLarge, magnitude, select(isMiddle, add(magnitude, one), one));
  Value r = div(numerator, denominator);
  Value z = mul(r, r);
  Value p = polynomial(z, table(coefficients::kAtanF32, coefficients::kAtanF64));
  Value series = mad(mul(z, r), p, r);
  // The low halves of pi/4 and pi/2 matter for f64 and are what rounding lost for f32.
  auto low = [&](double v) { return isDouble() ? v / kPi * 1.2246467991473532e-16 : v - double(float(v)); };
  auto high = [&](double v) { return isDouble() ? v : double(float(v)); };
  Value zero = constant(0);
  Value offset = select(isLarge, constant(high(kPi / 2)), select(isMiddle, constant(high(kPi / 4)), zero));
  Value offsetLow = select(isLarge, constant(low(kPi / 2)), select(isMiddle, constant(low(kPi / 4)), zero));
  return copySign(add(offset, add(series, offsetLow)), x);
}

Value Expander::atan2(Value y, Value x) {
  Value ax = abs(x), ay = abs(y);
  Value infinity = constant(kInfinity), zero = constant(0);
  // y/x with equal infinities is one, 0/0 is zero.
  Value bothInfinite = both(equal(ax, infinity), equal(ay, infinity));
  Value bothZero = both(equal(ax, zero), equal(ay, zero));
  Value ratio = select(bothInfinite, constant(1), select(bothZero, zero, div(ay, ax)));
  Value angle = atan(ratio);
  Value isLeft = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, toBits(x), integer(0));
  double piHigh = isDouble() ? kPi : double(float(kPi));
  double piLow = isDouble() ? 1.2246467991473532e-16 : kPi - piHigh;
  Value left = sub(constant(piHigh), sub(angle, constant(piLow)));
  Value result = copySign(select(isLeft, left, angle), y);
  return select(either(isNan(x), isNan(y)), add(x, y), result);
}

/// asin(w) with w = magnitude, or sqrt((1 - magnitude) / 2) where the magnitude is above 1/2.
Value Expander::asinSeries(Value magnitude, Value &isLarge) {
  isLarge = greater(magnitude, constant(0.5));
  Value t = mul(sub(constant(1), magnitude), constant(0.5));
  Value w = select(isLarge, sqrt(t), magnitude);
  Value z = select(isLarge, t, mul(magnitude, magnitude));
  Value p = polynomial(z, table(coefficients::kAsinF32, coefficients::kAsinF64));
  return mad(mul(z, w), p, w);
}

Value Expander::asin(Value x) {
  Value isLarge;
  Value series = asinSeries(abs(x), isLarge);
  double half = isDouble() ? kPi / 2 : double(float(kPi / 2));
  double low = isDouble() ? 6.123233995736766e-17 : kPi / 2 - half;
  Value large = sub(constant(half), sub(add(series, series), constant(low)));
  return copySign(select(isLarge, large, series), x);
}

/// pi/2 - asin(x) near zero, 2 asin(sqrt((1 - |x|) / 2)) above 1/2, pi minus that below -1/2.
Value Expander::acos(Value x) {
  Value isLarge;
  Value series = asinSeries(abs(x), isLarge);
  double half = isDouble() ? kPi / 2 : double(float(kPi / 2));
  double low = isDouble() ? 6.123233995736766e-17 : kPi / 2 - half;
  Value twice = add(series, series);
  Value isNegative = less(x, constant(0));
  Value large = select(isNegative, sub(constant(2 * half), sub(twice, constant(2 * low))), twice);
  Value small = sub(constant(half), sub(copySign(series, x), constant(low)));
  return select(isLarge, large, small);
}

/// |x|^y. f32 goes through f64 (24 more bits than needed). f64 carries log|x| as high + low.
Value Expander::powMagnitude(Value x, Value y) {
  if (!isDouble()) {
    Expander wide(builder, loc, withElement(builder.getF64Type()), options);
    Value wideX = arith::ExtFOp::create(builder, loc, wide.type, x);
    Value wideY = arith::ExtFOp::create(builder, loc, wide.type, y);
    Value result = wide.exp(wide.mul(wideY, wide.log(wideX)));
    return arith::TruncFOp::create(builder, loc, type, result);
  }
  // Splits into 26 bits and the rest, so that products of high parts are exact without fma.
  auto split = [&](Value v) {
    Value high = fromBits(iand(toBits(v), integer(~((int64_t(1) << 27) - 1))));
    return std::pair<Value, Value>(high, sub(v, high));
  };
  auto productLow = [&](Value a, Value b, Value product) {
    auto [ah, al] = split(a);
    auto [bh, bl] = split(b);
    Value error = sub(product, mul(ah, bh));
    error = sub(sub(error, mul(al, bh)), mul(ah, bl));
    return sub(mul(al, bl), error);
  };
  LogParts parts = logParts(x);
  Value f = parts.f;
  Value denominator = add(f, constant(2));
  Value denominatorLow = sub(f, sub(denominator, constant(2)));
  Value s = div(f, denominator);
  Value sd = mul(s, denominator);
  Value rest = sub(sub(f, sd), productLow(s, denominator, sd));
  Value sLow = div(sub(rest, mul(s, denominatorLow)), denominator);
  Value z = mul(s, s);
  Value tail = mul(mul(s, z), polynomial(z, coefficients::kLogF64));
  // log = k ln2High + 2 s + (2 sLow + tail + k ln2Low), summed exactly from the largest.
  Value kHigh = mul(parts.kFloat, constant(6.93147180369123816490e-01));
  Value twiceS = add(s, s);
  Value low = add(add(add(sLow, sLow), mul(parts.kFloat, constant(1.90821492927058770002e-10))), tail);
  Value sum = add(kHigh, twiceS);
  Value swapped = sub(sum, kHigh);
  Value lost = add(sub(kHigh, sub(sum, swapped)), sub(twiceS, swapped));
  low = add(low, lost);
  Value high = add(sum, low);
  low = sub(low, sub(high, sum));
  Value product = mul(high, y);
  Value productError = add(productLow(high, y, product), mul(low, y));
  // Where the product is huge or not finite its error is NaN and does not matter.
  Value matters = less(abs(product), constant(800));
  Value base = exp(product);
  Value corrected = add(base, mul(base, productError));
  Value special = logSpecial(x, product);
  Value usesLog = either(equal(x, constant(0)), equal(x, constant(kInfinity)));
  Value atLimits = exp(mul(special, y));
  return select(usesLog, atLimits, select(matters, corrected, base));
}

/// Sign and special cases of C99's pow around |x|^y.
Value Expander::pow(Value x, Value y) {
  Value magnitude = abs(x);
  Value result = powMagnitude(magnitude, y);
  Value one = constant(1), zero = constant(0);
  // y is an integer when rounding leaves it; it is odd when its half is none. Large floats are even.
  Value isInteger = equal(rounded(MathFunction::Floor, y), y);
  Value half = mul(y, constant(0.5));
  Value isOdd = both(isInteger, compare(arith::CmpFPredicate::UNE, rounded(MathFunction::Floor, half), half));
  Value signBit =
      iand(toBits(x), integer(bits() == 64 ? std::numeric_limits<int64_t>::min() : int64_t(0x80000000)));
  Value withSign = fromBits(ior(toBits(result), signBit));
  result = select(isOdd, withSign, result);
  Value isNegative = both(less(x, zero), less(magnitude, constant(kInfinity)));
  Value finiteY = less(abs(y), constant(kInfinity));
  Value isFraction = compare(arith::CmpFPredicate::UNE, rounded(MathFunction::Floor, y), y);
  Value undefined = both(both(isNegative, finiteY), isFraction);
  result = select(undefined, constant(kNan), result);
  // |x| = 1 with y infinite is 1; x = 1 and y = 0 win over NaN.
  Value unit = both(equal(magnitude, one), equal(abs(y), constant(kInfinity)));
  result = select(unit, one, result);
  result = select(either(isNan(x), isNan(y)), add(x, y), result);
  return select(either(equal(x, one), equal(y, zero)), one, result);
}

/// Rounding to integers: instructions where there are some, else through the 2^mantissa trick.
Value Expander::rounded(MathFunction function, Value x) {
  if (options.rounding) {
    switch (function) {
    case MathFunction::Floor:
      return math::FloorOp::create(builder, loc, x);
    case MathFunction::Ceil:
      return math::CeilOp::create(builder, loc, x);
    case MathFunction::Trunc:
      return math::TruncOp::create(builder, loc, x);
    case MathFunction::RoundEven:
      return math::RoundEvenOp::create(builder, loc, x);
    default:
      break;
    }
  }
  Value magnitude = abs(x);
  Value limit = constant(isDouble() ? 0x1p52 : 0x1p23);
  Value even = sub(add(magnitude, limit), limit);
  Value one = constant(1), zero = constant(0), result;
  // The magnitude rounded to even, corrected towards what is asked.
  auto below = [&](Value r) { return sub(r, select(greater(r, magnitude), one, zero)); };
  switch (function) {
  case MathFunction::RoundEven:
    result = even;
    break;
  case MathFunction::Trunc:
    result = below(even);
    break;
  case MathFunction::Round: {
    Value down = options.rounding ? Value(math::FloorOp::create(builder, loc, magnitude)) : below(even);
    Value isHalf = compare(arith::CmpFPredicate::OGE, sub(magnitude, down), constant(0.5));
    result = add(down, select(isHalf, one, zero));
    break;
  }
  default: {
    bool up = function == MathFunction::Ceil;
    Value nearest = copySign(even, x);
    Value wrong = up ? less(nearest, x) : greater(nearest, x);
    Value fixed = add(nearest, select(wrong, constant(up ? 1 : -1), zero));
    return select(less(magnitude, limit), copySign(fixed, x), x);
  }
  }
  return select(less(magnitude, limit), copySign(result, x), x);
}

Value Expander::expand(MathFunction function, ValueRange x) {
  switch (function) {
  case MathFunction::Exp:
    return exp(x[0], options.flushesExp);
  case MathFunction::Exp2:
    return exp2(x[0]);
  case MathFunction::Expm1:
    return expm1(x[0]);
  case MathFunction::Log:
    return log(x[0]);
  case MathFunction::Log2:
    return logOfBase(x[0], 1 / kLn2, 1, 0);
  case MathFunction::Log10:
    return isDouble() ? logOfBase(x[0], 4.34294481903251816668e-01, 3.01029995663611771306e-01,
                                  3.69423907715893078616e-13)
                      : logOfBase(x[0], 4.34294481903251816668e-01, 3.0102920532e-01, 7.9034151668e-07);
  case MathFunction::Log1p:
    return log1p(x[0]);
  case MathFunction::Sqrt:
    return sqrt(x[0]);
  case MathFunction::Rsqrt:
    return div(constant(1), sqrt(x[0]));
  case MathFunction::Tanh:
    return tanh(x[0]);
  case MathFunction::Sinh:
    return sinh(x[0]);
  case MathFunction::Cosh:
    return cosh(x[0]);
  case MathFunction::Asinh:
    return asinh(x[0]);
  case MathFunction::Acosh:
    return acosh(x[0]);
  case MathFunction::Atanh:
    return atanh(x[0]);
  case MathFunction::Erf:
    return erf(x[0]);
  case MathFunction::Sin:
    return sin(x[0]);
  case MathFunction::Cos:
    return cos(x[0]);
  case MathFunction::Tan:
    return tan(x[0]);
  case MathFunction::Asin:
    return asin(x[0]);
  case MathFunction::Acos:
    return acos(x[0]);
  case MathFunction::Atan:
    return atan(x[0]);
  case MathFunction::Atan2:
    return atan2(x[0], x[1]);
  case MathFunction::Pow:
    return pow(x[0], x[1]);
  case MathFunction::Floor:
  case MathFunction::Ceil:
  case MathFunction::Trunc:
  case MathFunction::Round:
  case MathFunction::RoundEven:
    return rounded(function, x[0]);
  }
  llvm_unreachable("unknown math function");
}

Value expandMath(OpBuilder &builder, Location loc, MathFunction function, ValueRange operands,
                 const MathOptions &options) {
  return Expander(builder, loc, operands[0].getType(), options).expand(function, operands);
}

Value multiplyAdd(OpBuilder &builder, Location loc, Value a, Value b, Value c, const MathOptions &options) {
  return FloatBuilder(builder, loc, a.getType(), options.fma).mad(a, b, c);
}

} // namespace ortc::emit
