// A number is taken apart into a mantissa with its top bit set and an exponent, and put together by one function that
// rounds. In between, a mantissa that is shifted right keeps in its lowest bit whether ones were lost: with two or more
// bits below the last place, that rounds as all of them would.
// Exponents say what is not a finite number, too: those of zero, infinity and NaN are so far apart that sums and
// differences of two still tell. A number is infinite where its exponent is too large, zero where it is shifted out,
// and NaN where the exponent is NaN's, or that of an infinite number whose mantissa is zero: 0 * infinity, and
// infinity - infinity.
// Loops of a bit a turn are less code than shifts of 64 bits by a variable.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/DoubleFunctions.h"

using namespace llvm;

namespace ortc::cpu {

constexpr uint64_t kTop = uint64_t(1) << 63, kInfinity = uint64_t(2047) << 52, kNan = uint64_t(0xfff) << 51;
constexpr int64_t kMostExponent = 2046; ///< of a finite number
// All are numbers that an instruction of Thumb holds, or their complements.
constexpr int64_t kZeroExponent = ~0x2000, kInfiniteExponent = 0x4000, kNanExponent = 0x10000;
/// Above what sums, differences and means of two exponents are without NaN, below what they are with one.
constexpr int64_t kLeastNan = 0x8100;
/// Above the exponents of zeros that are differences and products of finite numbers, below those of infinite ones.
constexpr int64_t kLeastInfinite = 0x1000;

static StringRef nameOf(const Type *type) {
  return type->isDoubleTy() ? "f64" : type->isFloatTy() ? "f32" : type->isHalfTy() ? "f16" : "bf16";
}

DoubleFunctions::DoubleFunctions(Module &module, bool fused)
    : IntegerCode(module, "f64"), number(StructType::get(i64, i32)), fused(fused) {}

/// `{i64, i32} (i64 mantissa, i32 exponent)`: the same number with the top bit of its mantissa set.
Function *DoubleFunctions::normalize() {
  return make("normalize", number, {i64, i32}, [&]() -> Value * {
    auto pair = [&](Value *mantissa, Value *exponent) {
      return b.CreateInsertValue(b.CreateInsertValue(PoisonValue::get(number), mantissa, 0), exponent, 1);
    };
    returnIf(isZero(argument(0)), [&] {
      Value *isNan = b.CreateICmpSGT(argument(1), i32Of(kLeastInfinite));
      return pair(i64Of(0), b.CreateSelect(isNan, i32Of(kNanExponent), i32Of(kZeroExponent)));
    });
    Values result = repeatWhile(
        {argument(0), argument(1)}, [&](const Values &v) { return b.CreateNot(isNegative(v[0])); },
        [&](Values &v) { v = {b.CreateShl(v[0], 1), b.CreateSub(v[1], i32Of(1))}; });
    return pair(result[0], result[1]);
  });
}

/// `{i64, i32} (i64 bits)`: mantissa and exponent of the magnitude.
Function *DoubleFunctions::unpack() {
  return make("unpack", number, {i64}, [&]() -> Value * {
    Value *fraction = b.CreateAnd(b.CreateShl(argument(0), 11), i64Of(~kTop));
    Value *exponent = b.CreateAnd(b.CreateLShr(upper(argument(0)), 20), i32Of(2047));
    Value *isSmall = isZero(exponent);
    Value *mantissa = b.CreateSelect(isSmall, fraction, b.CreateOr(fraction, i64Of(kTop)));
    Value *special = b.CreateSelect(isZero(fraction), i32Of(kInfiniteExponent), i32Of(kNanExponent));
    Value *biased = b.CreateSelect(b.CreateICmpEQ(exponent, i32Of(2047)), special, exponent);
    auto *call = b.CreateCall(normalize(), {mantissa, b.CreateAdd(biased, b.CreateZExt(isSmall, i32))});
    call->setTailCall();
    return call;
  });
}

/// `i64 (i64 mantissa, i32 count)`, keeping whether ones were lost.
Function *DoubleFunctions::shiftRight() {
  return make("shift", i64, {i64, i32}, [&]() -> Value * {
    Value *count = smaller(argument(1), i32Of(64));
    return repeatWhile(
        {argument(0), count}, [&](const Values &v) { return b.CreateIsNotNull(v[1]); },
        [&](Values &v) { v = {shiftBit(v[0]), b.CreateSub(v[1], i32Of(1))}; })[0];
  });
}

/// To nearest even, by the bits below the last place and that of the last place itself.
Function *DoubleFunctions::roundWide() {
  return make("round", i64, {i64, i32, i32}, [&]() -> Value * {
    Value *pair = b.CreateCall(normalize(), {argument(0), argument(1)});
    Value *exponent = b.CreateExtractValue(pair, 1), *sign = signOf(argument(2));
    returnIf(b.CreateICmpSGT(exponent, i32Of(kMostExponent)), [&] {
      Value *isNan = b.CreateICmpSGT(exponent, i32Of(kLeastNan));
      return b.CreateSelect(isNan, i64Of(kNan), b.CreateOr(sign, i64Of(kInfinity)));
    });
    Value *kept = larger(exponent, i32Of(1));
    Value *mantissa = callShiftRight(b.CreateExtractValue(pair, 0), b.CreateSub(kept, exponent));
    Value *places = b.CreateLShr(mantissa, 11);
    Value *rest = b.CreateAnd(lower(mantissa), i32Of(0x7ff)), *last = b.CreateAnd(lower(places), i32Of(1));
    Value *up = b.CreateLShr(b.CreateAdd(b.CreateAdd(rest, last), i32Of(0x3ff)), 11);
    // The mantissa's own top bit, and what rounding carries over it, count up the exponent.
    Value *biased = b.CreateShl(b.CreateZExt(b.CreateShl(b.CreateSub(kept, i32Of(1)), 20), i64), 32);
    return b.CreateOr(b.CreateAdd(b.CreateAdd(places, b.CreateZExt(up, i64)), biased), sign);
  });
}

/// The same with one word of bits, of which those of `type` are the lowest.
Function *DoubleFunctions::roundNarrow(Type *type) {
  const fltSemantics &format = type->getFltSemantics();
  unsigned fraction = APFloat::semanticsPrecision(format) - 1, drop = 31 - fraction;
  int64_t bias = APFloat::semanticsMaxExponent(format);
  int32_t infinity = static_cast<int32_t>(2 * bias + 1) << fraction;
  return make("round." + nameOf(type), i32, {i64, i32, i32}, [&]() -> Value * {
    Value *pair = b.CreateCall(normalize(), {argument(0), argument(1)});
    Value *exponent = b.CreateExtractValue(pair, 1);
    Value *sign = b.CreateLShr(signBit(argument(2)), 32 - type->getScalarSizeInBits());
    returnIf(b.CreateICmpSGT(exponent, i32Of(kBias + bias)), [&] {
      Value *isNan = b.CreateICmpSGT(exponent, i32Of(kLeastNan));
      return b.CreateSelect(isNan, i32Of(infinity | 1 << (fraction - 1)), b.CreateOr(sign, i32Of(infinity)));
    });
    Value *kept = larger(exponent, i32Of(kBias - bias + 1));
    Value *mantissa = callShiftRight(b.CreateExtractValue(pair, 0), b.CreateSub(kept, exponent));
    Value *word = withRest(upper(mantissa), lower(mantissa)), *places = b.CreateLShr(word, drop);
    Value *rest = b.CreateAnd(word, i32Of((1 << drop) - 1)), *last = b.CreateAnd(places, i32Of(1));
    Value *up = b.CreateLShr(b.CreateAdd(b.CreateAdd(rest, last), i32Of((1 << (drop - 1)) - 1)), drop);
    Value *biased = b.CreateShl(b.CreateSub(kept, i32Of(kBias - bias + 1)), fraction);
    return b.CreateOr(b.CreateAdd(b.CreateAdd(places, up), biased), sign);
  });
}

Function *DoubleFunctions::round(Type *type) { return type->isDoubleTy() ? roundWide() : roundNarrow(type); }

Function *DoubleFunctions::add() {
  return make("add", i64, {i64, i64}, [&]() -> Value * {
    if (fused)
      return b.CreateCall(multiplyAdd(), {argument(0), i64Of(uint64_t(kBias) << 52), argument(1)});
    Value *isLess = b.CreateICmpULT(b.CreateShl(argument(0), 1), b.CreateShl(argument(1), 1));
    Value *x = b.CreateSelect(isLess, argument(1), argument(0)),
          *y = b.CreateSelect(isLess, argument(0), argument(1));
    Number large = callUnpack(x), small = callUnpack(y);
    Value *shifted =
        callShiftRight(b.CreateLShr(small.mantissa, 1), b.CreateSub(large.exponent, small.exponent));
    Value *sum = b.CreateAdd(b.CreateLShr(large.mantissa, 1),
                             negateIf(isNegative(b.CreateXor(upper(x), upper(y))), shifted));
    // x - x is +0, -0 - 0 is -0.
    Value *sign = b.CreateSelect(isZero(sum), b.CreateAnd(upper(x), upper(y)), upper(x));
    return callRound(sum, b.CreateAdd(large.exponent, i32Of(1)), sign);
  });
}

/// Upper and lower half of a product.
std::pair<Value *, Value *> DoubleFunctions::multiplyWide(Value *x, Value *y) {
  Value *p = b.CreateMul(b.CreateZExt(x, i128), b.CreateZExt(y, i128));
  return {b.CreateTrunc(b.CreateLShr(p, 64), i64), b.CreateTrunc(p, i64)};
}

Function *DoubleFunctions::multiply() {
  return make("multiply", i64, {i64, i64}, [&]() -> Value * {
    if (fused)
      return b.CreateCall(multiplyAdd(), {argument(0), argument(1), i64Of(kTop)});
    Number x = callUnpack(argument(0)), y = callUnpack(argument(1));
    Value *exponent = b.CreateAdd(x.exponent, y.exponent);
    auto [high, low] = multiplyWide(x.mantissa, y.mantissa);
    Value *mantissa = withRest(high, low);
    return callRound(mantissa, b.CreateSub(exponent, i32Of(kBias - 1)),
                     b.CreateXor(upper(argument(0)), upper(argument(1))));
  });
}

/// By doubling and subtracting, until the one that the quotient starts with is at its top. Dividends are below twice
/// the divisor: differences are negative just where it does not fit. Of a divisor of zero the quotient is not zero.
Function *DoubleFunctions::divide() {
  return make("divide", i64, {i64, i64}, [&]() -> Value * {
    Number x = callUnpack(argument(0)), y = callUnpack(argument(1));
    Value *exponent = b.CreateSub(x.exponent, y.exponent);
    // Zero by zero, infinity by infinity.
    Value *isSpecial = b.CreateICmpUGT(b.CreateAdd(x.exponent, i32Of(2048)), i32Of(8192));
    returnIf(b.CreateAnd(isZero(exponent), isSpecial), i64Of(kNan));
    exponent = b.CreateSelect(b.CreateICmpSGT(y.exponent, i32Of(kLeastNan)), y.exponent, exponent);
    Value *divisor = b.CreateLShr(y.mantissa, 1);
    Values result = repeat({i64Of(1), b.CreateLShr(x.mantissa, 1)}, [&](Values &v) {
      Value *difference = b.CreateSub(v[1], divisor), *fits = b.CreateNot(isNegative(difference));
      Value *doubled = b.CreateShl(v[0], 1);
      v[0] = b.CreateSelect(fits, b.CreateOr(doubled, i64Of(1)), doubled);
      v[1] = b.CreateShl(b.CreateSelect(fits, difference, v[1]), 1);
      return b.CreateNot(isNegative(v[0]));
    });
    return callRound(withRest(b.CreateShl(result[0], 1), result[1]), b.CreateAdd(exponent, i32Of(kBias)),
                     b.CreateXor(upper(argument(0)), upper(argument(1))));
  });
}

/// A bit of the root a turn, from the top: with it, what it adds to the square is 2 root + bit times the bit.
Function *DoubleFunctions::squareRoot() {
  return make("sqrt", i64, {i64}, [&]() -> Value * {
    Number x = callUnpack(argument(0));
    returnIf(isNegative(b.CreateAnd(upper(argument(0)), upper(x.mantissa))), i64Of(kNan));
    Value *doubled = b.CreateAdd(x.exponent, i32Of(kBias));
    Value *isOdd = b.CreateTrunc(doubled, b.getInt1Ty());
    Value *even = b.CreateLShr(x.mantissa, 10), *square = b.CreateSelect(isOdd, b.CreateShl(even, 1), even);
    Values result = repeat({square, i64Of(0), i64Of(uint64_t(1) << 53)}, [&](Values &v) {
      Value *step = b.CreateAdd(b.CreateShl(v[1], 1), v[2]);
      Value *difference = b.CreateSub(v[0], step), *fits = b.CreateNot(isNegative(difference));
      v[0] = b.CreateShl(b.CreateSelect(fits, difference, v[0]), 1);
      v[1] = b.CreateSelect(fits, b.CreateOr(v[1], v[2]), v[1]);
      v[2] = b.CreateLShr(v[2], 1);
      return b.CreateIsNotNull(v[2]);
    });
    return callRound(withRest(b.CreateShl(result[1], 10), result[0]), b.CreateAShr(doubled, 1),
                     upper(argument(0)));
  });
}

/// In 128 bits, of which the top two are for sign and carry. Neither term loses bits where they cancel: that of the
/// smaller exponent is then shifted by two at most, and the lowest 20 bits of both are zero.
Function *DoubleFunctions::multiplyAdd() {
  return make("fma", i64, {i64, i64, i64}, [&]() -> Value * {
    Number x = callUnpack(argument(0)), y = callUnpack(argument(1));
    auto join = [&](Value *high, Value *low) {
      return b.CreateOr(b.CreateShl(b.CreateZExt(high, i128), 64), b.CreateZExt(low, i128));
    };
    auto [high, low] = multiplyWide(b.CreateLShr(x.mantissa, 1), b.CreateLShr(y.mantissa, 1));
    Value *exponent = b.CreateSub(b.CreateAdd(x.exponent, y.exponent), i32Of(kBias - 1));
    returnIf(b.CreateAnd(isZero(high), b.CreateICmpSGT(exponent, i32Of(kLeastInfinite))), i64Of(kNan));
    Value *sign = b.CreateXor(upper(argument(0)), upper(argument(1))), *signZ = upper(argument(2));
    // Not beside the others: LLVM would load an address that is called three times in a block.
    Number z = callUnpack(argument(2));
    Value *opposed = isNegative(b.CreateXor(sign, signZ));
    Value *areInfinite = b.CreateICmpSGT(smaller(exponent, z.exponent), i32Of(kLeastInfinite));
    returnIf(b.CreateAnd(areInfinite, opposed), i64Of(kNan));

    // To one exponent. What is shifted by 127 bits is far below the other.
    auto align = [&](Value *term, Value *from, Value *to) {
      return repeatWhile(
          {term, larger(from, b.CreateSub(to, i32Of(127)))},
          [&](const Values &v) { return b.CreateICmpSLT(v[1], to); },
          [&](Values &v) { v = {shiftBit(v[0], /*isSigned=*/true), b.CreateAdd(v[1], i32Of(1))}; });
    };
    Values aligned = align(join(high, low), exponent, z.exponent);
    Value *addend = join(negateIf(opposed, b.CreateLShr(z.mantissa, 2)), i64Of(0));
    Value *sum = b.CreateAdd(aligned[0], align(addend, z.exponent, aligned[1])[0]);
    // x - x is +0, -0 - 0 is -0.
    returnIf(isZero(sum), signOf(b.CreateAnd(sign, signZ)));
    Values result = repeatWhile(
        {negateIf(isNegative(sum), sum), b.CreateAdd(aligned[1], i32Of(2))},
        [&](const Values &v) { return b.CreateNot(isNegative(v[0])); },
        [&](Values &v) { v = {b.CreateShl(v[0], 1), b.CreateSub(v[1], i32Of(1))}; });
    Value *mantissa =
        withRest(b.CreateTrunc(b.CreateLShr(result[0], 64), i64), b.CreateTrunc(result[0], i64));
    Value *top = upper(b.CreateTrunc(b.CreateLShr(sum, 64), i64));
    return callRound(mantissa, result[1], b.CreateXor(sign, top));
  });
}

/// Bits of negative numbers count down: as negative integers they are in order, and both zeros one.
Function *DoubleFunctions::compare() {
  return make("compare", i32, {i64, i64}, [&]() -> Value * {
    Value *x = argument(0), *y = argument(1);
    auto magnitude = [&](Value *v) { return withRest(b.CreateShl(upper(v), 1), lower(v)); };
    returnIf(b.CreateICmpUGT(b.CreateBinaryIntrinsic(Intrinsic::umax, magnitude(x), magnitude(y)),
                             i32Of(int32_t(kInfinity >> 31))),
             i32Of(CmpInst::FCMP_UNO));
    auto order = [&](Value *v) { return negateIf(isNegative(v), v, kTop); };
    x = order(x), y = order(y);
    returnIf(b.CreateICmpEQ(x, y), i32Of(CmpInst::FCMP_OEQ));
    return b.CreateSelect(b.CreateICmpSLT(x, y), i32Of(CmpInst::FCMP_OLT), i32Of(CmpInst::FCMP_OGT));
  });
}

/// With eleven bits below the point, which are cut off after one is added that carries.
Function *DoubleFunctions::toIntegral() {
  return make("integral", i64, {i64, i32}, [&]() -> Value * {
    Number x = callUnpack(argument(0));
    Value *count = b.CreateSub(i32Of(kBias + 52), x.exponent), *sign = upper(argument(0));
    returnIf(b.CreateICmpSLE(count, i32Of(0)), argument(0)); // from 2^52 on all are integral
    Value *mantissa = callShiftRight(x.mantissa, count);
    Value *isOdd = b.CreateAnd(b.CreateLShr(lower(mantissa), 11), i32Of(1));
    Value *isOutwards = b.CreateICmpEQ(argument(1), b.CreateLShr(sign, 31));
    Value *added = b.CreateSelect(isOutwards, i32Of(0x7ff), i32Of(0));
    added =
        b.CreateSelect(b.CreateICmpEQ(argument(1), i32Of(ToEven)), b.CreateAdd(isOdd, i32Of(0x3ff)), added);
    Value *sum = b.CreateAdd(mantissa, b.CreateZExt(added, i64));
    return callRound(b.CreateAnd(sum, i64Of(~uint64_t(0x7ff))), i32Of(kBias + 52), sign);
  });
}

Function *DoubleFunctions::toInteger() {
  return make("integer", i64, {i64}, [&]() -> Value * {
    Number x = callUnpack(argument(0));
    Value *count = b.CreateSub(i32Of(kBias + 63), x.exponent);
    count = b.CreateSelect(b.CreateICmpULT(count, i32Of(64)), count, i32Of(64));
    Value *magnitude = repeatWhile(
        {x.mantissa, count}, [&](const Values &v) { return b.CreateIsNotNull(v[1]); },
        [&](Values &v) { v = {b.CreateLShr(v[0], 1), b.CreateSub(v[1], i32Of(1))}; })[0];
    return negateIf(isNegative(argument(0)), magnitude);
  });
}

Function *DoubleFunctions::fromSigned(Type *type) {
  return make("signed." + nameOf(type), bitsOf(type), {i64}, [&]() -> Value * {
    Value *magnitude = negateIf(isNegative(argument(0)), argument(0));
    return b.CreateCall(round(type), {magnitude, i32Of(kBias + 63), upper(argument(0))});
  });
}

Function *DoubleFunctions::extend() {
  return make("extend", i64, {i32}, [&]() -> Value * {
    Value *word = argument(0), *exponent = b.CreateAnd(b.CreateLShr(word, 23), i32Of(255));
    Value *fraction = b.CreateShl(word, 9), *isSpecial = b.CreateICmpEQ(exponent, i32Of(255));
    Value *special = b.CreateSelect(isZero(fraction), i32Of(kInfiniteExponent), i32Of(kNanExponent));
    Value *isSmall = isZero(exponent), *below = b.CreateLShr(fraction, 1);
    Value *top = b.CreateSelect(isSmall, below, b.CreateOr(below, i32Of(INT32_MIN)));
    Value *biased = b.CreateAdd(b.CreateAdd(exponent, b.CreateZExt(isSmall, i32)), i32Of(kBias - 127));
    return callRound(b.CreateShl(b.CreateZExt(top, i64), 32), b.CreateSelect(isSpecial, special, biased),
                     word);
  });
}

Function *DoubleFunctions::truncate(Type *type) {
  return make("to." + nameOf(type), i32, {i64}, [&]() -> Value * {
    Number x = callUnpack(argument(0));
    auto *call = b.CreateCall(round(type), {x.mantissa, x.exponent, upper(argument(0))});
    call->setTailCall();
    return call;
  });
}

} // namespace ortc::cpu
