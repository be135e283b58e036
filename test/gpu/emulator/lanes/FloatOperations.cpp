// Arithmetic in f32 and f64. Names are without the rounding mode, which is to nearest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Floats.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

/// The result of an f32 operation.
template <bool isFlushed> ORTC_INLINE float result(float value) {
  return flushIf<isFlushed>(canonical(value));
}

enum class Class { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <Class which, class T> ORTC_INLINE bool isOfClass(T a) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int mantissa = sizeof(T) == 4 ? 23 : 52;
  constexpr Bits exponents = sizeof(T) == 4 ? Bits(0xff) : Bits(0x7ff);
  Bits bits = bitCast<Bits>(a);
  Bits exponent = bits >> mantissa & exponents, rest = bits & ((Bits(1) << mantissa) - 1);
  switch (which) {
  case Class::Finite:
    return exponent != exponents;
  case Class::Infinite:
    return exponent == exponents && rest == 0;
  case Class::Number:
    return a == a;
  case Class::NotANumber:
    return a != a;
  case Class::Normal:
    return exponent != 0 && exponent != exponents;
  case Class::Subnormal:
    return exponent == 0 && rest != 0;
  }
}

template <bool isFlushed> ORTC_INLINE float in(float value) { return flushIf<isFlushed>(value); }

/// Two f32 in a register of 64 bits.
struct Pair {
  float low, high;
};
template <class Compute> ORTC_INLINE Pair both(Compute compute, Pair a, Pair b, Pair c = {}) {
  return {compute(a.low, b.low, c.low), compute(a.high, b.high, c.high)};
}

#define PAIR(ftz, isFlushed)                                                                                 \
  ORTC_BINARY(                                                                                               \
      "add" ftz ".f32x2", Pair, Pair, Pair,                                                                  \
      both([](float x, float y, float) { return result<isFlushed>(in<isFlushed>(x) + in<isFlushed>(y)); },   \
           a, b)),                                                                                           \
      ORTC_BINARY("sub" ftz ".f32x2", Pair, Pair, Pair,                                                      \
                  both([](float x, float y,                                                                  \
                          float) { return result<isFlushed>(in<isFlushed>(x) - in<isFlushed>(y)); },         \
                       a, b)),                                                                               \
      ORTC_BINARY("mul" ftz ".f32x2", Pair, Pair, Pair,                                                      \
                  both([](float x, float y,                                                                  \
                          float) { return result<isFlushed>(in<isFlushed>(x) * in<isFlushed>(y)); },         \
                       a, b)),                                                                               \
      ORTC_TERNARY("fma" ftz ".f32x2", Pair, Pair, Pair, Pair,                                               \
                   both(                                                                                     \
                       [](float x, float y, float z) {                                                       \
                         return result<isFlushed>(                                                           \
                             std::fma(in<isFlushed>(x), in<isFlushed>(y), in<isFlushed>(z)));                \
                       },                                                                                    \
                       a, b, c))

#define SINGLE(ftz, isFlushed)                                                                               \
  ORTC_BINARY("add" ftz ".f32", float, float, float,                                                         \
              result<isFlushed>(in<isFlushed>(a) + in<isFlushed>(b))),                                       \
      ORTC_BINARY("sub" ftz ".f32", float, float, float,                                                     \
                  result<isFlushed>(in<isFlushed>(a) - in<isFlushed>(b))),                                   \
      ORTC_BINARY("mul" ftz ".f32", float, float, float,                                                     \
                  result<isFlushed>(in<isFlushed>(a) * in<isFlushed>(b))),                                   \
      ORTC_BINARY("div" ftz ".f32", float, float, float,                                                     \
                  result<isFlushed>(in<isFlushed>(a) / in<isFlushed>(b))),                                   \
      ORTC_BINARY("add" ftz ".sat.f32", float, float, float, saturate(in<isFlushed>(a) + in<isFlushed>(b))), \
      ORTC_BINARY("sub" ftz ".sat.f32", float, float, float, saturate(in<isFlushed>(a) - in<isFlushed>(b))), \
      ORTC_BINARY("mul" ftz ".sat.f32", float, float, float, saturate(in<isFlushed>(a) * in<isFlushed>(b))), \
      ORTC_TERNARY("fma" ftz ".f32", float, float, float, float,                                             \
                   result<isFlushed>(std::fma(in<isFlushed>(a), in<isFlushed>(b), in<isFlushed>(c)))),       \
      ORTC_TERNARY("fma" ftz ".sat.f32", float, float, float, float,                                         \
                   saturate(std::fma(in<isFlushed>(a), in<isFlushed>(b), in<isFlushed>(c)))),                \
      ORTC_UNARY("sqrt" ftz ".f32", float, float, result<isFlushed>(std::sqrt(in<isFlushed>(a)))),           \
      ORTC_UNARY("rcp" ftz ".f32", float, float, result<isFlushed>(1.0f / in<isFlushed>(a))),                \
      ORTC_BINARY("min" ftz ".f32", float, float, float,                                                     \
                  extreme<false, false>(in<isFlushed>(a), in<isFlushed>(b))),                                \
      ORTC_BINARY("max" ftz ".f32", float, float, float,                                                     \
                  extreme<true, false>(in<isFlushed>(a), in<isFlushed>(b))),                                 \
      ORTC_BINARY("min" ftz ".NaN.f32", float, float, float,                                                 \
                  extreme<false, true>(in<isFlushed>(a), in<isFlushed>(b))),                                 \
      ORTC_BINARY("max" ftz ".NaN.f32", float, float, float,                                                 \
                  extreme<true, true>(in<isFlushed>(a), in<isFlushed>(b))),                                  \
      ORTC_UNARY("abs" ftz ".f32", float, float, bitCast<float>(bitsOf(in<isFlushed>(a)) & ~kSingleSign)),   \
      ORTC_UNARY("neg" ftz ".f32", float, float, bitCast<float>(bitsOf(in<isFlushed>(a)) ^ kSingleSign)),    \
      ORTC_BINARY("div.approx" ftz ".f32", float, float, float,                                              \
                  result<isFlushed>(in<isFlushed>(a) / in<isFlushed>(b))),                                   \
      ORTC_BINARY("div.full" ftz ".f32", float, float, float,                                                \
                  result<isFlushed>(in<isFlushed>(a) / in<isFlushed>(b))),                                   \
      ORTC_UNARY("rcp.approx" ftz ".f32", float, float, result<isFlushed>(1.0f / in<isFlushed>(a))),         \
      ORTC_UNARY("sqrt.approx" ftz ".f32", float, float, result<isFlushed>(std::sqrt(in<isFlushed>(a)))),    \
      ORTC_UNARY("rsqrt.approx" ftz ".f32", float, float,                                                    \
                 result<isFlushed>(float(1.0 / std::sqrt(double(in<isFlushed>(a)))))),                       \
      ORTC_UNARY("ex2.approx" ftz ".f32", float, float, result<isFlushed>(std::exp2(in<isFlushed>(a)))),     \
      ORTC_UNARY("lg2.approx" ftz ".f32", float, float, result<isFlushed>(std::log2(in<isFlushed>(a)))),     \
      ORTC_UNARY("sin.approx" ftz ".f32", float, float, result<isFlushed>(std::sin(in<isFlushed>(a)))),      \
      ORTC_UNARY("cos.approx" ftz ".f32", float, float, result<isFlushed>(std::cos(in<isFlushed>(a))))
#define TEST(name, which)                                                                                    \
  ORTC_UNARY("testp." name ".f32", Predicate, float, predicateOf(isOfClass<Class::which>(a))),               \
      ORTC_UNARY("testp." name ".f64", Predicate, double, predicateOf(isOfClass<Class::which>(a)))

constexpr uint64_t kDoubleSign = uint64_t(1) << 63;

const Operation kOperations[] = {
    SINGLE("", false),
    SINGLE(".ftz", true),
    PAIR("", false),
    PAIR(".ftz", true),
    ORTC_UNARY("tanh.approx.f32", float, float, canonical(std::tanh(a))),
    ORTC_BINARY("copysign.f32", float, float, float,
                bitCast<float>((bitsOf(a) & kSingleSign) | (bitsOf(b) & ~kSingleSign))),
    ORTC_BINARY("add.f64", double, double, double, a + b),
    ORTC_BINARY("sub.f64", double, double, double, a - b),
    ORTC_BINARY("mul.f64", double, double, double, a *b),
    ORTC_BINARY("div.f64", double, double, double, a / b),
    ORTC_TERNARY("fma.f64", double, double, double, double, std::fma(a, b, c)),
    ORTC_UNARY("sqrt.f64", double, double, std::sqrt(a)),
    ORTC_UNARY("rcp.f64", double, double, 1.0 / a),
    ORTC_UNARY("rcp.approx.ftz.f64", double, double, 1.0 / a),
    ORTC_UNARY("rsqrt.approx.f64", double, double, 1.0 / std::sqrt(a)),
    ORTC_BINARY("min.f64", double, double, double, extreme<false, false>(a, b)),
    ORTC_BINARY("max.f64", double, double, double, extreme<true, false>(a, b)),
    ORTC_UNARY("abs.f64", double, double, bitCast<double>(bitsOf(a) & ~kDoubleSign)),
    ORTC_UNARY("neg.f64", double, double, bitCast<double>(bitsOf(a) ^ kDoubleSign)),
    ORTC_BINARY("copysign.f64", double, double, double,
                bitCast<double>((bitsOf(a) & kDoubleSign) | (bitsOf(b) & ~kDoubleSign))),
    TEST("finite", Finite),
    TEST("infinite", Infinite),
    TEST("number", Number),
    TEST("notanumber", NotANumber),
    TEST("normal", Normal),
    TEST("subnormal", Subnormal)};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList floatOperations() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
