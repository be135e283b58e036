/* What compilers call for 32-bit Arm without double precision, as far as the runtime needs it, where there is no
 * library of the compiler: the names and conventions are those of the Arm ABI's run-time helpers (the first two
 * registers are the first argument, also in functions of hard float). Compiled with -fno-builtin, as string.c is.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#if defined(__arm__)
#include <stddef.h>
#include <stdint.h>

#include "runtime/freestanding/string.h"

#define AEABI __attribute__((pcs("aapcs")))

void __aeabi_memcpy(void *target, const void *source, size_t bytes) { memcpy(target, source, bytes); }
void __aeabi_memcpy4(void *target, const void *source, size_t bytes) { memcpy(target, source, bytes); }
void __aeabi_memcpy8(void *target, const void *source, size_t bytes) { memcpy(target, source, bytes); }
void __aeabi_memmove(void *target, const void *source, size_t bytes) { memmove(target, source, bytes); }
void __aeabi_memset(void *target, size_t bytes, int value) { memset(target, value, bytes); }
void __aeabi_memclr(void *target, size_t bytes) { memset(target, 0, bytes); }
void __aeabi_memclr4(void *target, size_t bytes) { memset(target, 0, bytes); }
void __aeabi_memclr8(void *target, size_t bytes) { memset(target, 0, bytes); }

/* Shifts of 64 bits by 0 to 63, in halves. */
static uint64_t join(uint32_t low, uint32_t high) {
  union {
    uint32_t halves[2];
    uint64_t whole;
  } both = {{low, high}};
  return both.whole;
}
#define LOW(value) ((uint32_t)(value))
#define HIGH(value) ((uint32_t)((value) >> 32))

uint64_t __aeabi_llsl(uint64_t value, int by) {
  uint32_t low = LOW(value);
  if (by >= 32)
    return join(0, low << (by - 32));
  return by ? join(low << by, HIGH(value) << by | low >> (32 - by)) : value;
}
uint64_t __aeabi_llsr(uint64_t value, int by) {
  uint32_t high = HIGH(value);
  if (by >= 32)
    return join(high >> (by - 32), 0);
  return by ? join(LOW(value) >> by | high << (32 - by), high >> by) : value;
}

/* Doubles go as their bits: a function of double precision would need these functions. */
#define EXPONENT(bits) ((int)((bits) >> 52 & 0x7ff))
#define FRACTION(bits) ((bits) & 0xfffffffffffffu)

AEABI uint64_t __aeabi_f2d(uint32_t bits) {
  uint64_t sign = (uint64_t)(bits >> 31) << 63, fraction = bits & 0x7fffff;
  int exponent = (int)(bits >> 23 & 0xff);
  if (exponent == 0xff)
    return sign | (uint64_t)0x7ff << 52 | fraction << 29 | (uint64_t)(fraction != 0) << 51;
  if (!exponent) {
    if (!fraction)
      return sign;
    int shift = __builtin_clz((uint32_t)fraction) - 8;
    fraction = fraction << shift & 0x7fffff;
    exponent = 1 - shift;
  }
  return sign | (uint64_t)(exponent + 896) << 52 | fraction << 29;
}

/* `fraction` >> shift, to the nearest, halves to the even; at most 63. */
static uint64_t shiftRounded(uint64_t fraction, int shift) {
  uint64_t kept = fraction >> shift, lost = fraction & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)));
}

AEABI uint32_t __aeabi_d2f(uint64_t bits) {
  uint32_t sign = (uint32_t)(bits >> 63) << 31;
  uint64_t fraction = FRACTION(bits);
  int exponent = EXPONENT(bits);
  if (exponent == 0x7ff)
    return sign | 0x7f800000u | (fraction ? 0x400000u | (uint32_t)(fraction >> 29) : 0);
  exponent -= 896;
  if (exponent >= 0xff)
    return sign | 0x7f800000u;
  if (exponent > 0) /* a carry goes into the exponent */
    return sign | (((uint32_t)exponent << 23) + (uint32_t)shiftRounded(fraction, 29));
  if (exponent < -25)
    return sign;
  return sign | (uint32_t)shiftRounded(fraction | (uint64_t)1 << 52, 30 - exponent);
}

AEABI uint64_t __aeabi_l2d(int64_t value) {
  uint64_t sign = value < 0 ? (uint64_t)1 << 63 : 0, magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  if (!magnitude)
    return 0;
  int zeros = __builtin_clzll(magnitude), exponent = 1086 - zeros;
  magnitude <<= zeros; /* the highest bit is set: it is added to the exponent */
  return sign | (((uint64_t)(exponent - 1) << 52) + shiftRounded(magnitude, 11));
}

AEABI int64_t __aeabi_d2lz(uint64_t bits) {
  int exponent = EXPONENT(bits) - 1075;
  uint64_t fraction = FRACTION(bits) | (uint64_t)1 << 52;
  if (exponent > 10)
    return bits >> 63 ? INT64_MIN : INT64_MAX;
  fraction = exponent >= 0 ? fraction << exponent : exponent > -53 ? fraction >> -exponent : 0;
  return (int64_t)(bits >> 63 ? 0 - fraction : fraction);
}

/* Numbers as integers that are ordered as they are. */
static int64_t order(uint64_t bits) {
  return (int64_t)(bits >> 63 ? 0 - (bits & ~((uint64_t)1 << 63)) : bits);
}
static int isNan(uint64_t bits) { return EXPONENT(bits) == 0x7ff && FRACTION(bits); }

AEABI int __aeabi_dcmple(uint64_t a, uint64_t b) { return !isNan(a) && !isNan(b) && order(a) <= order(b); }
AEABI int __aeabi_dcmplt(uint64_t a, uint64_t b) { return !isNan(a) && !isNan(b) && order(a) < order(b); }
AEABI int __aeabi_dcmpge(uint64_t a, uint64_t b) { return __aeabi_dcmple(b, a); }
AEABI int __aeabi_dcmpgt(uint64_t a, uint64_t b) { return __aeabi_dcmplt(b, a); }
AEABI int __aeabi_dcmpeq(uint64_t a, uint64_t b) { return !isNan(a) && !isNan(b) && order(a) == order(b); }
AEABI int __aeabi_dcmpun(uint64_t a, uint64_t b) { return isNan(a) || isNan(b); }
#else
typedef int ortc_empty_file;
#endif
