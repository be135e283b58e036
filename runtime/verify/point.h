// Points of the curve edwards25519, -x^2 + y^2 = 1 + d x^2 y^2.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "runtime/verify/number.h"

namespace ortc::verify {

/// x = X / Z, y = Y / Z, x y = T / Z (RFC 8032, 5.1.4).
struct Point {
  Number x, y, z, t;
};

extern const Point kBase;

/// `sum` may be one of the others.
void add(Point &sum, const Point &a, const Point &b);
/// From the 32 bytes that stand for a point. False where they stand for none, or are not the ones for it.
bool decode(Point &point, const uint8_t bytes[32]);
void encode(uint8_t bytes[32], const Point &point);
/// Whether it is one of the eight points of which eight make zero: no key, as signatures by it fit many messages.
bool hasSmallOrder(Point point);
/// a P + b Q.
Point addMultiples(const Number &a, const Point &p, const Number &b, const Point &q);

} // namespace ortc::verify
