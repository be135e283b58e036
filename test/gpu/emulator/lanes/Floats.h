// Numbers as GPUs compute with them: canonical NaNs, flushed denormals, f16 and bf16.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "test/gpu/emulator/lanes/Lanes.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kSingleSign = 0x80000000u, kSingleExponent = 0x7f800000u, kSingleNan = 0x7fffffffu;

template <class To, class From> ORTC_INLINE To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
ORTC_INLINE uint32_t bitsOf(float value) { return bitCast<uint32_t>(value); }
ORTC_INLINE uint64_t bitsOf(double value) { return bitCast<uint64_t>(value); }

/// NVIDIA's arithmetic on f32 gives this one NaN, whatever went in. On f64 it is as on the host. Told by
/// bits: to compilers one NaN is as good as another.
ORTC_INLINE float canonical(float value) {
  uint32_t bits = bitsOf(value);
  return bitCast<float>((bits & 0x7fffffffu) > kSingleExponent ? kSingleNan : bits);
}
ORTC_INLINE double canonical(double value) { return value; }

/// .ftz: denormals become zeros of their sign.
ORTC_INLINE float flush(float value) {
  uint32_t bits = bitsOf(value);
  return bitCast<float>((bits & kSingleExponent) ? bits : bits & kSingleSign);
}
template <bool isFlushed> ORTC_INLINE float flushIf(float value) {
  if constexpr (isFlushed)
    return flush(value);
  else
    return value;
}

ORTC_INLINE float saturate(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }
ORTC_INLINE double saturate(double value) { return value > 0.0 ? (value < 1.0 ? value : 1.0) : 0.0; }

/// min and max order the zeros; a NaN loses against a number unless `wantsNan`.
template <bool isMax, bool wantsNan, class T> ORTC_INLINE T extreme(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Bits x = bitCast<Bits>(a), y = bitCast<Bits>(b);
  T same = bitCast<T>(isMax ? Bits(x & y)
                            : Bits(x | y)); // of equal numbers: their common bits, or of zeros the sign
  T value = a == b ? same : ((isMax ? a > b : a < b) ? a : b);
  if constexpr (wantsNan)
    return a != a || b != b ? bitCast<T>(sizeof(T) == 4 ? Bits(kSingleNan) : Bits(0x7fffffffffffffffu))
                            : value;
  else
    return canonical(a != a ? b : b != b ? a : value);
}

/// f16 -> f32, exact.
ORTC_INLINE float toFloat(Half half) {
  uint32_t magnitude = uint32_t(half.bits & 0x7fffu) << 13, sign = uint32_t(half.bits & 0x8000u) << 16;
  uint32_t normal = magnitude + (112u << 23);
  uint32_t special = magnitude | kSingleExponent;
  float denormal = bitCast<float>(magnitude + (113u << 23)) - bitCast<float>(113u << 23);
  uint32_t bits = magnitude >= (31u << 23) ? special : magnitude >= (1u << 23) ? normal : bitsOf(denormal);
  return bitCast<float>(bits | sign);
}
ORTC_INLINE float toFloat(Brain brain) { return bitCast<float>(uint32_t(brain.bits) << 16); }

/// f32 -> bf16, to nearest even or (isTruncated) towards zero; NaN is 0x7fff.
template <bool isTruncated = false> ORTC_INLINE Brain toBrain(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t rounded = isTruncated ? bits : bits + 0x7fffu + (bits >> 16 & 1);
  return {uint16_t((bits & 0x7fffffffu) > kSingleExponent ? 0x7fffu : rounded >> 16)};
}

/// f32 -> f16, likewise; what is too large becomes infinite, or the largest number where it is truncated.
template <bool isTruncated = false> ORTC_INLINE Half toHalf(float value) {
  uint32_t bits = bitsOf(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > kSingleExponent)
    return {0x7fff};
  if (isTruncated && magnitude >= 0x47800000u && magnitude < kSingleExponent)
    return {uint16_t(sign | 0x7bffu)};
  if (magnitude >= 0x47800000u)
    return {uint16_t(sign | 0x7c00u)};
  // Below 2^-14 the last bit stands for 2^-24; above, 13 bits go.
  uint32_t shift = magnitude < 0x38800000u ? 126 - (magnitude >> 23) : 13;
  if (shift > 25)
    return {uint16_t(sign)};
  uint32_t mantissa =
      magnitude < 0x38800000u ? (magnitude & 0x7fffffu) | 0x800000u : magnitude - (112u << 23);
  if (magnitude < 0x00800000u)
    return {uint16_t(sign)};
  uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  if (!isTruncated)
    kept += rest > half || (rest == half && (kept & 1));
  return {uint16_t(sign | kept)};
}

/// The sum of two doubles, rounded so that rounding it again to fewer bits gives what rounding once would:
/// when it is inexact, its last bit is one.
ORTC_INLINE double addToOdd(double a, double b) {
  double sum = a + b;
  double back = sum - a;
  double error = (a - (sum - back)) + (b - back);
  uint64_t bits = bitsOf(sum);
  if (error == 0 || error != error || (bits & 1))
    return sum;
  return bitCast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
/// f64 -> f32 in that way.
ORTC_INLINE float narrowToOdd(double value) {
  float narrow = float(value);
  double error = value - double(narrow);
  uint32_t bits = bitsOf(narrow);
  if (error == 0 || error != error || (bits & 1) || std::isinf(narrow))
    return std::isinf(narrow) && !std::isinf(value) ? bitCast<float>(bits - 1) : narrow;
  if ((bits & 0x7fffffffu) == 0)
    return bitCast<float>((error < 0 ? kSingleSign : 0) | 1u);
  return bitCast<float>((error > 0) == (narrow > 0) ? bits + 1 : bits - 1);
}

/// .ftz of small floats.
ORTC_INLINE Half flush(Half a) { return {uint16_t(a.bits & 0x7c00 ? a.bits : a.bits & 0x8000)}; }
ORTC_INLINE Brain flush(Brain a) { return {uint16_t(a.bits & 0x7f80 ? a.bits : a.bits & 0x8000)}; }
template <class T> ORTC_INLINE float toFlushedFloat(T a) { return toFloat(flush(a)); }

template <class T> ORTC_INLINE T fromFloat(float value) {
  if constexpr (std::is_same_v<T, Half>)
    return toHalf(value);
  else
    return toBrain(value);
}
template <class T> ORTC_INLINE T fusedProduct(T a, T b, T c) {
  double product = double(toFloat(a)) * double(toFloat(b));
  return fromFloat<T>(narrowToOdd(addToOdd(product, double(toFloat(c)))));
}

} // namespace
} // namespace ortc::emulator
