// What AMD's instructions that multiply matrices compute, for all lanes of a wavefront.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/MatrixUnits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ortc::fibres {
namespace {

using Number = MatrixUnit::Number;
using Sum = MatrixUnit::Sum;

constexpr MatrixUnit kUnits[] = {
    {"llvm.amdgcn.mfma.f32.16x16x16bf16.1k", "gfx90a", 64, 16, Number::bf16, Sum::pairs, true},
    {"llvm.amdgcn.mfma.f32.16x16x4f32", "gfx90a", 64, 4, Number::f32, Sum::chain, true},
    {"llvm.amdgcn.mfma.f32.16x16x16bf16.1k", "gfx942", 64, 16, Number::bf16, Sum::aligned, true},
    {"llvm.amdgcn.mfma.f32.16x16x16f16", "gfx942", 64, 16, Number::f16, Sum::aligned, true},
    {"llvm.amdgcn.mfma.f32.16x16x4f32", "gfx942", 64, 4, Number::f32, Sum::chain, true},
    {"llvm.amdgcn.wmma.f32.16x16x16.bf16", "gfx1100", 32, 16, Number::bf16, Sum::products, false},
    {"llvm.amdgcn.wmma.f32.16x16x16.f16", "gfx1100", 32, 16, Number::f16, Sum::products, false},
};

float fromHalf(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = exponent == 31 ? (fraction ? std::numeric_limits<float>::quiet_NaN()
                                               : std::numeric_limits<float>::infinity())
                    : exponent     ? std::ldexp(float(1024 + fraction), exponent - 25)
                                   : std::ldexp(float(fraction), -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

float read(const void *from, Number number, int64_t at) {
  if (number == Number::f32)
    return static_cast<const float *>(from)[at];
  uint16_t bits = static_cast<const uint16_t *>(from)[at];
  return number == Number::f16 ? fromHalf(bits) : std::bit_cast<float>(uint32_t(bits) << 16);
}

/// A row of the first operand or a column of the second.
using Line = std::array<float, 16>;

/// CDNA: lane 16 * (k / n) + i has step k of line i as number k % n, where a lane has n. RDNA: lanes i and i + 16 have
/// all of line i; where they differ nobody knows which counts: NaN.
std::array<Line, 16> gather(const MatrixUnit &unit, const std::vector<MatrixOperands> &lanes, bool isFirst) {
  std::array<Line, 16> lines;
  auto readOf = [&](int64_t lane, int64_t at) {
    const void *from = isFirst ? lanes[lane].first : lanes[lane].second;
    return from ? read(from, unit.number, at) : std::numeric_limits<float>::quiet_NaN();
  };
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t k = 0; k < unit.depth; ++k) {
      int64_t n = unit.elements();
      float value = readOf(unit.lanes == 64 ? 16 * (k / n) + i : i, k % n);
      if (unit.lanes == 32 && readOf(i + 16, k) != value)
        value = std::numeric_limits<float>::quiet_NaN();
      lines[i][k] = value;
    }
  return lines;
}

/// Subnormal numbers as CDNA 2 takes them.
float flush(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }

float addPairs(const float *a, const float *b, float sum) {
  for (int64_t k = 0; k < 16; k += 4) {
    auto product = [&](int64_t i) { return flush(flush(a[k + i]) * flush(b[k + i])); };
    float low = flush(product(0) + product(1)), high = flush(product(2) + product(3));
    sum = flush(flush(sum) + flush(low + high));
  }
  return sum;
}

/// Of a number as it is stored: of subnormal ones that of the least normal one.
int exponentOf(float value, Number number) {
  return value == 0 ? -126 : std::max(std::ilogb(value), number == Number::f16 ? -14 : -126);
}

float addAligned(const float *a, const float *b, Number number, float sum) {
  for (int64_t k = 0; k < 16; k += 8) {
    double plain = sum;
    for (int64_t i = k; i < k + 8; ++i) {
      double product = double(a[i]) * double(b[i]); // what is too large for f32 is infinite
      plain += std::fabs(product) < 0x1p128 ? product : product * std::numeric_limits<double>::infinity();
    }
    if (!std::isfinite(plain)) {
      sum = float(plain);
      continue;
    }
    int largest = std::numeric_limits<int>::min();
    for (int64_t i = k; i < k + 8; ++i)
      largest = std::max(largest, exponentOf(a[i], number) + exponentOf(b[i], number));
    double group = 0; // in units of 2^(largest - 24)
    for (int64_t i = k; i < k + 8; ++i)
      group += std::trunc(std::ldexp(double(a[i]) * double(b[i]), 24 - largest));
    int both = std::max(largest, exponentOf(sum, Number::f32));
    double terms = std::ldexp(std::floor(std::ldexp(group, largest - 24 + 31 - both)), -31) +
                   std::ldexp(std::floor(std::ldexp(double(sum), 24 - both)), -24);
    sum = float(std::ldexp(terms, both));
  }
  return sum;
}

float add(const MatrixUnit &unit, const float *a, const float *b, float sum) {
  switch (unit.sum) {
  case Sum::pairs:
    return addPairs(a, b, sum);
  case Sum::aligned:
    return addAligned(a, b, unit.number, sum);
  case Sum::chain:
  case Sum::products:
    break; // products of numbers of 16 bits are exact in f32: a fused sum is that of the product
  }
  for (int64_t k = 0; k < unit.depth; ++k)
    sum = std::fma(a[k], b[k], sum);
  return sum;
}

} // namespace

const MatrixUnit *findMatrixUnit(std::string_view intrinsic, std::string_view processor) {
  const auto *found = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const MatrixUnit &unit) {
    return intrinsic.starts_with(unit.intrinsic) && unit.processor == processor;
  });
  return found == std::end(kUnits) ? nullptr : found;
}

void multiply(const MatrixUnit &unit, const std::vector<MatrixOperands> &lanes) {
  auto first = gather(unit, lanes, true), second = gather(unit, lanes, false);
  for (int64_t lane = 0; lane < unit.lanes; ++lane)
    for (int64_t i = 0; lanes[lane].result && i < unit.sums(); ++i) {
      // Of the first operand's rows and the second's columns.
      int64_t row = unit.sumsInColumns ? 4 * (lane / 16) + i : 2 * i + lane / 16, column = lane % 16;
      lanes[lane].result[i] = add(unit, first[row].data(), second[column].data(), lanes[lane].sums[i]);
    }
}

} // namespace ortc::fibres
