// Sums of products of tensor cores: run/TensorCores.h says how they are made.
//
// The eight columns of a tile are eight lanes of a vector. A factor is a signed significand as an f32 and an
// exponent. Significands' products have at most 22 bits, so they are exact in f32; scaled, they become
// integers of at most 27 bits by the conversion that cuts towards zero, and 16 of them fit into 32 bits. With
// the running sum there are 33 bits, exact in f64, from which the result is cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/lanes/Floats.h"
#include "test/gpu/emulator/run/TensorCores.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kRows = 16, kColumns = 8;

typedef float Singles __attribute__((vector_size(4 * kColumns)));
typedef int32_t Words __attribute__((vector_size(4 * kColumns)));
typedef double Doubles __attribute__((vector_size(8 * kColumns)));
typedef int64_t Longs __attribute__((vector_size(8 * kColumns)));

/// The exponent of a zero: below all others, also after the addition of another one.
constexpr int kOfZero = -4096;
/// Scales that leave nothing of a product are raised to this exponent, which leaves nothing either.
constexpr int kLeastScale = -40;

template <class T> struct Format; // bits of the fraction; the exponent's bias and its bits
template <> struct Format<Brain> {
  using Raw = uint16_t;
  static constexpr int fraction = 7, bias = 127, exponentMask = 0xff;
};
template <> struct Format<Half> {
  using Raw = uint16_t;
  static constexpr int fraction = 10, bias = 15, exponentMask = 0x1f;
};
/// tf32: the 13 lowest bits of its register count for nothing.
template <> struct Format<float> {
  using Raw = uint32_t;
  static constexpr int fraction = 23, bias = 127, exponentMask = 0xff;
  static constexpr uint32_t kept = ~0x1fffu;
};

template <class T> using RawOf = typename Format<T>::Raw;

/// Significands of magnitude 1 to 2, of subnormal numbers below 1, and exponents.
struct Factor {
  float significand;
  int32_t exponent;
};
template <class T> ORTC_INLINE Factor factorOf(uint32_t raw) {
  using F = Format<T>;
  constexpr int width = 8 * sizeof(RawOf<T>);
  const uint32_t sign = raw << (32 - width) & kSingleSign;
  const uint32_t fraction = (raw & ((1u << F::fraction) - 1)) << (23 - F::fraction);
  const int32_t field = int32_t(raw >> F::fraction & F::exponentMask);
  const float one = bitCast<float>(sign | 0x3f800000u);
  const float significand = bitCast<float>(sign | 0x3f800000u | fraction) - (field ? 0.0f : one);
  const int32_t exponent = (field ? field : 1) - F::bias;
  return {significand, significand == 0 ? kOfZero : exponent};
}
template <class T> ORTC_INLINE bool isSpecial(uint32_t raw) {
  using F = Format<T>;
  return (raw >> F::fraction & F::exponentMask) == F::exponentMask;
}
template <class T> ORTC_INLINE float valueOf(RawOf<T> raw) {
  if constexpr (std::is_same_v<T, float>)
    return bitCast<float>(raw);
  else
    return toFloat(T{raw});
}

template <class To, class From> ORTC_INLINE To sameBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
ORTC_INLINE Words larger(Words a, Words b) { return a > b ? a : b; }

/// A and B of a product of depth `depth`.
template <class T, uint32_t depth> struct Factors {
  RawOf<T> rawA[kRows][depth], rawB[kColumns][depth];
  alignas(32) float a[kRows][depth];
  alignas(32) int32_t exponentA[kRows][depth];
  alignas(32) float b[depth][kColumns];
  alignas(32) int32_t exponentB[depth][kColumns];
  bool hasSpecialA = false, hasSpecialB = false;

  /// What rawA holds becomes factors.
  void decodeA() {
    uint32_t special = 0;
    if constexpr (std::is_same_v<T, float>)
      for (uint32_t k = 0; k < kRows * depth; ++k)
        (&rawA[0][0])[k] &= Format<T>::kept;
    ORTC_LANE_LOOP
    for (uint32_t k = 0; k < kRows * depth; ++k) {
      const uint32_t raw = (&rawA[0][0])[k];
      const Factor factor = factorOf<T>(raw);
      (&a[0][0])[k] = factor.significand;
      (&exponentA[0][0])[k] = factor.exponent;
      special |= isSpecial<T>(raw);
    }
    hasSpecialA = special != 0;
  }
  /// What rawB holds.
  void decodeB() {
    uint32_t special = 0;
    if constexpr (std::is_same_v<T, float>)
      for (uint32_t k = 0; k < kColumns * depth; ++k)
        (&rawB[0][0])[k] &= Format<T>::kept;
    RawOf<T> turned[depth][kColumns];
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t column = 0; column < kColumns; ++column)
        turned[k][column] = rawB[column][k];
    ORTC_LANE_LOOP
    for (uint32_t k = 0; k < kColumns * depth; ++k) {
      const uint32_t raw = (&turned[0][0])[k];
      const Factor factor = factorOf<T>(raw);
      (&b[0][0])[k] = factor.significand;
      (&exponentB[0][0])[k] = factor.exponent;
      special |= isSpecial<T>(raw);
    }
    hasSpecialB = special != 0;
  }
};

/// 2 to the power of `exponent`, which has its bias already.
ORTC_INLINE Singles scaleOf(Words biased) {
  return sameBits<Singles>(larger(biased, Words{} + (127 + kLeastScale)) << 23);
}

/// f64 -> f32, cut towards zero; what is too large becomes infinite.
ORTC_INLINE Singles cutToSingle(Doubles value) {
  const Longs bits = sameBits<Longs>(value);
  const Longs magnitude = bits & INT64_MAX;
  const Words normal =
      sameBits<Words>(__builtin_convertvector(sameBits<Doubles>(bits & ~((int64_t(1) << 29) - 1)), Singles));
  // Numbers below 2^-126 are multiples of 2^-149.
  const Doubles steps = sameBits<Doubles>(magnitude) * 0x1p149;
  const Doubles most = Doubles{} + 0x1p23;
  const Longs isSmall = steps < most;
  const Words tiny = __builtin_convertvector(isSmall ? steps : most, Words);
  const Words sign = __builtin_convertvector(bits >> 32, Words) & INT32_MIN;
  return sameBits<Singles>(__builtin_convertvector(isSmall, Words) ? (tiny | sign) : normal);
}

/// f64 -> f16, to the nearest, as f32.
ORTC_INLINE Singles roundToHalf(Doubles value) {
  Singles rounded;
  for (uint32_t k = 0; k < kColumns; ++k)
    rounded[k] = toFloat(toHalf(narrowToOdd(value[k])));
  return rounded;
}

/// The sum of a group and of `c`, for a row.
template <bool isHalfSum, uint32_t group, int extraBits, int lowest>
ORTC_INLINE Singles addGroup(const float *a, const int32_t *exponentA, const float (*b)[kColumns],
                             const int32_t (*exponentB)[kColumns], Singles c) {
  constexpr int kept = 23 + extraBits;
  Singles cSignificand;
  Words cExponent, exponents[group];
  Singles products[group];
  for (uint32_t k = 0; k < kColumns; ++k) {
    const Factor factor = factorOf<float>(bitsOf(c[k]));
    cSignificand[k] = factor.significand;
    cExponent[k] = factor.exponent;
  }
  Words most = larger(cExponent, Words{} + lowest);
  for (uint32_t k = 0; k < group; ++k) {
    exponents[k] = sameBits<Words>(*reinterpret_cast<const Words *>(exponentB[k])) + exponentA[k];
    products[k] = *reinterpret_cast<const Singles *>(b[k]) * a[k];
    most = larger(most, exponents[k]);
  }
  const Words base = most - (127 + kept);
  Words sum = {};
  for (uint32_t k = 0; k < group; ++k)
    sum += __builtin_convertvector(products[k] * scaleOf(exponents[k] - base), Words);
  const Words before = __builtin_convertvector(cSignificand * scaleOf(cExponent - base), Words);
  const Doubles all = __builtin_convertvector(sum, Doubles) + __builtin_convertvector(before, Doubles);
  const Longs power = (__builtin_convertvector(most, Longs) + (1023 - kept)) << 52;
  const Doubles value = all * sameBits<Doubles>(power);
  if constexpr (isHalfSum)
    return roundToHalf(value);
  else
    return cutToSingle(value);
}

/// Sums with infinities and NaNs among their terms; others stay as they are.
template <class T, uint32_t depth>
void addSpecials(const Factors<T, depth> &factors, uint32_t first, uint32_t group, const float (*c)[kColumns],
                 float (*d)[kColumns]) {
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t column = 0; column < kColumns; ++column) {
      double sum = std::isfinite(c[row][column]) ? 0.0 : double(c[row][column]);
      for (uint32_t k = first; k < first + group; ++k) {
        const double product = double(valueOf<T>(factors.rawA[row][k])) * valueOf<T>(factors.rawB[column][k]);
        sum += std::isfinite(product) ? 0.0 : product;
      }
      if (!std::isfinite(sum))
        d[row][column] = canonical(float(sum));
    }
}

/// d += A B, in groups that follow each other.
template <class T, uint32_t depth, bool isHalfSum, uint8_t core>
ORTC_INLINE void addProducts(const Factors<T, depth> &factors, float (*d)[kColumns]) {
  constexpr const TensorCore &kCore = kTensorCores[core];
  constexpr uint32_t whole = std::is_same_v<T, float> ? kCore.tf32Group : kCore.group;
  constexpr uint32_t group = whole < depth ? whole : depth;
  alignas(32) float c[kRows][kColumns];
  for (uint32_t first = 0; first < depth; first += group) {
    std::memcpy(c, d, sizeof c);
    uint32_t special = factors.hasSpecialA | factors.hasSpecialB;
    for (uint32_t k = 0; k < kRows * kColumns; ++k)
      special |= (bitsOf((&c[0][0])[k]) & kSingleExponent) == kSingleExponent;
    for (uint32_t row = 0; row < kRows; ++row) {
      const Singles sum =
          addGroup<isHalfSum, group, kCore.extraBits, isHalfSum ? kCore.halfLowest : kCore.lowest>(
              factors.a[row] + first, factors.exponentA[row] + first, factors.b + first,
              factors.exponentB + first, *reinterpret_cast<const Singles *>(c[row]));
      std::memcpy(d[row], &sum, sizeof sum);
    }
    if (special)
      addSpecials(factors, first, group, c, d);
  }
}

} // namespace
} // namespace ortc::emulator
