// Numbers of 256 bits, and arithmetic in the field of the curve.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

namespace ortc::verify {

/// The least significant word first. Words of 32 bits, so that products fit in 64 on every processor.
struct Number {
  uint32_t at[8];
};

/// p = 2^255 - 19, of the field; and the order of the base point, 2^252 + 27742317777372353535851937790883648493.
extern const Number kPrime, kOrder;

Number load(const uint8_t bytes[32]);
void store(uint8_t bytes[32], const Number &a);

/// Takes `modulus` from `a` where that leaves a number; whether it did.
bool reduce(Number &a, const Number &modulus);

// In the field. Any number below 2^256 stands for its remainder by p, of operands and of results; a result may be in
// the place of an operand.
void add(Number &result, const Number &a, const Number &b);
void subtract(Number &result, const Number &a, const Number &b);
void multiply(Number &result, const Number &a, const Number &b);
/// a to the power 2^bits - 1 - zeros, where `zeros` has the bits that are not in the exponent.
void power(Number &result, const Number &a, unsigned bits, uint32_t zeros);
/// The remainder itself.
void normalise(Number &a);
bool isZero(Number a);

} // namespace ortc::verify
