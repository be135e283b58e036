// cvt from numbers: to integers in four rounding modes, to other numbers, to pairs of small ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Floats.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

struct HalfPair {
  Half low, high;
};
struct BrainPair {
  Brain low, high;
};

enum class To { Nearest, Zero, Down, Up };
template <To to, class F> ORTC_INLINE F roundTo(F value) {
  switch (to) {
  case To::Nearest:
    return std::nearbyint(value);
  case To::Zero:
    return std::trunc(value);
  case To::Down:
    return std::floor(value);
  case To::Up:
    return std::ceil(value);
  }
}

/// The nearest value of an integer type; NaN gives 0.
template <class T, class F> ORTC_INLINE T clampTo(F value) {
  constexpr int bits = 8 * sizeof(T);
  constexpr F beyond = F(std::is_signed_v<T> ? uint64_t(1) << (bits - 1) : uint64_t(1) << (bits - 1)) *
                       (std::is_signed_v<T> ? F(1) : F(2));
  constexpr F least = std::is_signed_v<T> ? -beyond : F(0);
  constexpr T most = T(std::is_signed_v<T> ? (uint64_t(1) << (bits - 1)) - 1 : ~uint64_t(0) >> (64 - bits));
  if (value != value)
    return 0;
  if (value >= beyond)
    return most;
  if (value < least)
    return std::is_signed_v<T> ? T(-most - 1) : T(0);
  return T(value);
}

/// As hardware rounds f32 to tf32: to nearest, ties away from zero.
ORTC_INLINE uint32_t toTf32(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) >= kSingleExponent)
    return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}
ORTC_INLINE uint32_t toTf32Even(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) >= kSingleExponent)
    return bits;
  return (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
}
ORTC_INLINE float positive(float value) { return value > 0.0f ? value : value != value ? value : 0.0f; }

#define INTEGER_1(mode, to, suffix, T)                                                                       \
  ORTC_UNARY("cvt." mode "." suffix ".f32", T, float, clampTo<T>(roundTo<To::to>(a))),                       \
      ORTC_UNARY("cvt." mode ".ftz." suffix ".f32", T, float, clampTo<T>(roundTo<To::to>(flush(a)))),        \
      ORTC_UNARY("cvt." mode "." suffix ".f64", T, double, clampTo<T>(roundTo<To::to>(a)))
#define INTEGERS(mode, to)                                                                                   \
  INTEGER_1(mode, to, "u8", uint8_t), INTEGER_1(mode, to, "s8", int8_t),                                     \
      INTEGER_1(mode, to, "u16", uint16_t), INTEGER_1(mode, to, "s16", int16_t),                             \
      INTEGER_1(mode, to, "u32", uint32_t), INTEGER_1(mode, to, "s32", int32_t),                             \
      INTEGER_1(mode, to, "u64", uint64_t), INTEGER_1(mode, to, "s64", int64_t)
#define WHOLE(mode, to)                                                                                      \
  ORTC_UNARY("cvt." mode ".f32.f32", float, float, canonical(roundTo<To::to>(a))),                           \
      ORTC_UNARY("cvt." mode ".ftz.f32.f32", float, float, canonical(roundTo<To::to>(flush(a)))),            \
      ORTC_UNARY("cvt." mode ".sat.f32.f32", float, float, saturate(roundTo<To::to>(a))),                    \
      ORTC_UNARY("cvt." mode ".f64.f64", double, double, roundTo<To::to>(a))
#define SMALL(suffix, T, Pair, to)                                                                           \
  ORTC_UNARY("cvt." suffix ".f32", T, float, to(a)),                                                         \
      ORTC_UNARY("cvt.relu." suffix ".f32", T, float, to(positive(a))),                                      \
      ORTC_UNARY("cvt.rz." suffix ".f32", T, float, to<true>(a)),                                            \
      ORTC_UNARY("cvt." suffix ".f64", T, double, to(narrowToOdd(a))),                                       \
      ORTC_BINARY("cvt." suffix "x2.f32", Pair, float, float, Pair{to(b), to(a)}),                           \
      ORTC_BINARY("cvt.relu." suffix "x2.f32", Pair, float, float, Pair{to(positive(b)), to(positive(a))}),  \
      ORTC_BINARY("cvt.rz." suffix "x2.f32", Pair, float, float, Pair{to<true>(b), to<true>(a)}),            \
      ORTC_UNARY("cvt.f32." suffix, float, T, canonical(toFloat(a))),                                        \
      ORTC_UNARY("cvt.ftz.f32." suffix, float, T, flush(canonical(toFloat(a)))),                             \
      ORTC_UNARY("cvt.f64." suffix, double, T, double(toFloat(a)))

const Operation kOperations[] = {INTEGERS("rni", Nearest),
                                 INTEGERS("rzi", Zero),
                                 INTEGERS("rmi", Down),
                                 INTEGERS("rpi", Up),
                                 WHOLE("rni", Nearest),
                                 WHOLE("rzi", Zero),
                                 WHOLE("rmi", Down),
                                 WHOLE("rpi", Up),
                                 SMALL("f16", Half, HalfPair, toHalf),
                                 SMALL("bf16", Brain, BrainPair, toBrain),
                                 ORTC_UNARY("cvt.f32.f64", float, double, canonical(float(a))),
                                 ORTC_UNARY("cvt.ftz.f32.f64", float, double, flush(canonical(float(a)))),
                                 ORTC_UNARY("cvt.f64.f32", double, float, double(a)),
                                 ORTC_UNARY("cvt.ftz.f64.f32", double, float, double(flush(a))),
                                 ORTC_UNARY("cvt.f32.f32", float, float, a),
                                 ORTC_UNARY("cvt.ftz.f32.f32", float, float, flush(a)),
                                 ORTC_UNARY("cvt.sat.f32.f32", float, float, saturate(a)),
                                 ORTC_UNARY("cvt.ftz.sat.f32.f32", float, float, saturate(flush(a))),
                                 ORTC_UNARY("cvt.f64.f64", double, double, a),
                                 ORTC_UNARY("cvt.sat.f64.f64", double, double, saturate(a)),
                                 ORTC_UNARY("cvt.rna.tf32.f32", uint32_t, float, toTf32(a)),
                                 ORTC_UNARY("cvt.rn.tf32.f32", uint32_t, float, toTf32Even(a))};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList floatConversions() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
