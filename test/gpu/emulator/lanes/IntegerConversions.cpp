// cvt between integers, and from integers to numbers. Names are without the rounding mode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

#define FROM_ALL(X, suffix, T)                                                                               \
  X(suffix, T, "u8", uint8_t), X(suffix, T, "s8", int8_t), X(suffix, T, "u16", uint16_t),                    \
      X(suffix, T, "s16", int16_t), X(suffix, T, "u32", uint32_t), X(suffix, T, "s32", int32_t),             \
      X(suffix, T, "u64", uint64_t), X(suffix, T, "s64", int64_t)
#define PLAIN(suffix, T, from, F) ORTC_UNARY("cvt." suffix "." from, T, F, T(a))

/// The nearest value of a type.
template <class T, class F> ORTC_INLINE T clamp(F value) {
  using Wide = __int128;
  constexpr int bits = 8 * sizeof(T);
  constexpr Wide most = std::is_signed_v<T> ? (Wide(1) << (bits - 1)) - 1 : (Wide(1) << bits) - 1;
  constexpr Wide least = std::is_signed_v<T> ? -(Wide(1) << (bits - 1)) : 0;
  return T(Wide(value) < least ? least : Wide(value) > most ? most : Wide(value));
}
/// An unsigned integer as a number, in any rounding mode: compilers' own ways give -0 for 0 where sums round
/// down.
template <class F, class T> ORTC_INLINE F directed(T value) {
  uint64_t wide = value;
  bool isLarge = wide >> 63;
  int64_t half = int64_t(isLarge ? wide >> 1 | (wide & 1) : wide);
  asm("" : "+r"(half)); // hides that it is not negative
  return isLarge ? F(half) * F(2) : F(half);
}
#define DIRECTED(suffix, F)                                                                                  \
  ORTC_UNARY("cvt.directed." suffix ".u32", F, uint32_t, directed<F>(a)),                                    \
      ORTC_UNARY("cvt.directed." suffix ".u64", F, uint64_t, directed<F>(a))
#define CLAMPED(suffix, T, from, F) ORTC_UNARY("cvt.sat." suffix "." from, T, F, clamp<T, F>(a))

const Operation kOperations[] = {FROM_ALL(PLAIN, "u8", uint8_t),
                                 FROM_ALL(PLAIN, "s8", int8_t),
                                 FROM_ALL(PLAIN, "u16", uint16_t),
                                 FROM_ALL(PLAIN, "s16", int16_t),
                                 FROM_ALL(PLAIN, "u32", uint32_t),
                                 FROM_ALL(PLAIN, "s32", int32_t),
                                 FROM_ALL(PLAIN, "u64", uint64_t),
                                 FROM_ALL(PLAIN, "s64", int64_t),
                                 FROM_ALL(PLAIN, "f32", float),
                                 FROM_ALL(PLAIN, "f64", double),
                                 DIRECTED("f32", float),
                                 DIRECTED("f64", double),
                                 FROM_ALL(CLAMPED, "u8", uint8_t),
                                 FROM_ALL(CLAMPED, "s8", int8_t),
                                 FROM_ALL(CLAMPED, "u16", uint16_t),
                                 FROM_ALL(CLAMPED, "s16", int16_t),
                                 FROM_ALL(CLAMPED, "u32", uint32_t),
                                 FROM_ALL(CLAMPED, "s32", int32_t),
                                 FROM_ALL(CLAMPED, "u64", uint64_t),
                                 FROM_ALL(CLAMPED, "s64", int64_t)};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList integerConversions() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
