// Points of the curve edwards25519, after RFC 8032. One formula adds and doubles: small, and without cases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/verify/point.h"

namespace ortc::verify {

/// d = -121665 / 121666; 2 d; a root of -1.
static const Number kD = {
    {0x135978a3, 0x75eb4dca, 0x4141d8ab, 0x00700a4d, 0x7779e898, 0x8cc74079, 0x2b6ffe73, 0x52036cee}};
static const Number kTwiceD = {
    {0x26b2f159, 0xebd69b94, 0x8283b156, 0x00e0149a, 0xeef3d130, 0x198e80f2, 0x56dffce7, 0x2406d9dc}};
static const Number kRootOfMinusOne = {
    {0x4a0ea0b0, 0xc4ee1b27, 0xad2fe478, 0x2f431806, 0x3dfbd7a7, 0x2b4d0099, 0x4fc1df0b, 0x2b832480}};
static const Number kOne = {{1}};
const Point kBase = {
    {{0x8f25d51a, 0xc9562d60, 0x9525a7b2, 0x692cc760, 0xfdd6dc5c, 0xc0a4e231, 0xcd6e53fe, 0x216936d3}},
    {{0x66666658, 0x66666666, 0x66666666, 0x66666666, 0x66666666, 0x66666666, 0x66666666, 0x66666666}},
    {{1}},
    {{0xa5b7dda3, 0x6dde8ab3, 0x775152f5, 0x20f09f80, 0x64abe37d, 0x66ea4e8e, 0xd78b7665, 0x67875f0f}}};

void add(Point &sum, const Point &p, const Point &q) {
  Number a, b, c, d, e, f;
  subtract(a, p.y, p.x);
  subtract(b, q.y, q.x);
  multiply(a, a, b);
  add(b, p.y, p.x);
  add(c, q.y, q.x);
  multiply(b, b, c);
  multiply(c, p.t, q.t);
  multiply(c, c, kTwiceD);
  multiply(d, p.z, q.z);
  add(d, d, d);
  subtract(e, b, a);
  add(b, b, a); // H
  subtract(f, d, c);
  add(d, d, c); // G
  multiply(sum.x, e, f);
  multiply(sum.y, d, b);
  multiply(sum.t, e, b);
  multiply(sum.z, f, d);
}

bool decode(Point &point, const uint8_t bytes[32]) {
  Number u, v, w, &x = point.x, &y = point.y;
  y = load(bytes);
  bool isOdd = y.at[7] >> 31;
  y.at[7] &= 0x7fffffff;
  w = y;
  if (reduce(w, kPrime))
    return false;
  // x^2 = u / v with u = y^2 - 1, v = d y^2 + 1; then x = u v^3 (u v^7)^((p - 5) / 8), perhaps times the root of -1.
  multiply(w, y, y);
  subtract(u, w, kOne);
  multiply(v, w, kD);
  add(v, v, kOne);
  multiply(w, v, v);
  multiply(w, w, v); // v^3
  multiply(x, w, u);
  multiply(w, w, w);
  multiply(w, w, v); // v^7
  multiply(w, w, u);
  power(w, w, 252, 2); // (p - 5) / 8 = 2^252 - 3
  multiply(x, x, w);
  multiply(w, x, x);
  multiply(w, w, v);
  add(v, w, u);
  subtract(w, w, u);
  if (!isZero(w)) {
    if (!isZero(v))
      return false;
    multiply(x, x, kRootOfMinusOne);
  }
  normalise(x);
  if ((x.at[0] & 1) != isOdd) {
    if (isZero(x))
      return false;
    subtract(x, kPrime, x);
  }
  point.z = kOne;
  multiply(point.t, x, y);
  return true;
}

void encode(uint8_t bytes[32], const Point &point) {
  Number inverse, x, y;
  power(inverse, point.z, 255, 20); // p - 2 = 2^255 - 21
  multiply(x, point.x, inverse);
  multiply(y, point.y, inverse);
  normalise(x);
  normalise(y);
  y.at[7] |= x.at[0] << 31;
  store(bytes, y);
}

bool hasSmallOrder(Point point) {
  for (int i = 0; i < 3; i++)
    add(point, point, point);
  return isZero(point.x); // 0, or the point (0, -1), which no point times eight is
}

Point addMultiples(const Number &a, const Point &p, const Number &b, const Point &q) {
  Point both, sum = {{}, kOne, kOne, {}};
  add(both, p, q);
  for (unsigned i = 256; i-- > 0;) {
    add(sum, sum, sum);
    unsigned inA = a.at[i / 32] >> i % 32 & 1, inB = b.at[i / 32] >> i % 32 & 1;
    if (inA | inB)
      add(sum, sum, !inB ? p : !inA ? q : both);
  }
  return sum;
}

} // namespace ortc::verify
