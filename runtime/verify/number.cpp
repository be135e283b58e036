// Numbers of 256 bits, and arithmetic in the field of the curve.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/verify/number.h"

namespace ortc::verify {

const Number kPrime = {
    {0xffffffed, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x7fffffff}};
const Number kOrder = {{0x5cf5d3ed, 0x5812631a, 0xa2f79cd6, 0x14def9de, 0, 0, 0, 0x10000000}};

Number load(const uint8_t bytes[32]) {
  Number a = {};
  for (unsigned i = 0; i < 32; i++)
    a.at[i / 4] |= (uint32_t)bytes[i] << 8 * (i % 4);
  return a;
}

void store(uint8_t bytes[32], const Number &a) {
  for (unsigned i = 0; i < 32; i++)
    bytes[i] = (uint8_t)(a.at[i / 4] >> 8 * (i % 4));
}

bool reduce(Number &a, const Number &modulus) {
  Number difference;
  int64_t carry = 0;
  for (int i = 0; i < 8; i++) {
    carry += (int64_t)a.at[i] - modulus.at[i];
    difference.at[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (!carry)
    a = difference;
  return !carry;
}

/// Adds carry * 2^256, which is carry * 38.
static void fold(Number &a, int64_t carry) {
  while (carry) {
    carry *= 38;
    for (uint32_t &word : a.at) {
      carry += word;
      word = (uint32_t)carry;
      carry >>= 32;
    }
  }
}

/// a + sign * b.
static void combine(Number &result, const Number &a, const Number &b, int sign) {
  int64_t carry = 0;
  for (int i = 0; i < 8; i++) {
    carry += (int64_t)a.at[i] + sign * (int64_t)b.at[i];
    result.at[i] = (uint32_t)carry;
    carry >>= 32;
  }
  fold(result, carry);
}

void add(Number &result, const Number &a, const Number &b) { combine(result, a, b, 1); }
void subtract(Number &result, const Number &a, const Number &b) { combine(result, a, b, -1); }

void multiply(Number &result, const Number &a, const Number &b) {
  uint32_t product[16] = {};
  for (int i = 0; i < 8; i++) {
    uint64_t carry = 0;
    for (int j = 0; j < 8; j++) {
      carry += (uint64_t)a.at[i] * b.at[j] + product[i + j];
      product[i + j] = (uint32_t)carry;
      carry >>= 32;
    }
    product[i + 8] = (uint32_t)carry;
  }
  uint64_t carry = 0;
  for (int i = 0; i < 8; i++) {
    carry += product[i] + (uint64_t)38 * product[i + 8];
    result.at[i] = (uint32_t)carry;
    carry >>= 32;
  }
  fold(result, (int64_t)carry);
}

void power(Number &result, const Number &a, unsigned bits, uint32_t zeros) {
  Number base = a;
  result = a; // the first bit is set
  while (--bits) {
    multiply(result, result, result);
    if (bits > 32 || !(zeros >> (bits - 1) & 1))
      multiply(result, result, base);
  }
}

void normalise(Number &a) {
  while (reduce(a, kPrime)) {
  }
}

bool isZero(Number a) {
  normalise(a);
  uint32_t any = 0;
  for (uint32_t word : a.at)
    any |= word;
  return !any;
}

} // namespace ortc::verify
