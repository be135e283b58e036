/* Division with 64 bits, which 32-bit Arm has no instruction for, as its run-time ABI names it: compilers call these
 * functions and take them from their own library elsewhere. Compiled with -fno-builtin.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#if defined(__arm__)
#include <stdint.h>

#define HELPER __attribute__((visibility("hidden"), used))

HELPER uint64_t ortc_divide(uint64_t value, uint64_t by, uint64_t *rest) {
  uint64_t quotient = 0, left = 0;
  for (int bit = 0; bit < 64; bit++, value <<= 1) { /* shifts by a variable would be calls */
    uint32_t carry = (uint32_t)(left >> 63);
    left = left << 1 | value >> 63;
    quotient <<= 1;
    if (carry || left >= by) {
      left -= by;
      quotient |= 1;
    }
  }
  *rest = left;
  return quotient;
}

HELPER int64_t ortc_divide_signed(int64_t value, int64_t by, int64_t *rest) {
  uint64_t left, quotient = ortc_divide(value < 0 ? -(uint64_t)value : (uint64_t)value,
                                        by < 0 ? -(uint64_t)by : (uint64_t)by, &left);
  *rest = (int64_t)(value < 0 ? -left : left);
  return (int64_t)((value < 0) != (by < 0) ? -quotient : quotient);
}

/* The quotient comes in r0 and r1, the rest in r2 and r3. */
#define DIVIDE(name, function)                                                                               \
  HELPER __attribute__((naked)) void name(void) {                                                            \
    __asm__("push {r6, lr}\n\tsub sp, sp, #16\n\tadd r6, sp, #8\n\tstr r6, [sp]\n\tbl " #function            \
            "\n\tldr r2, [sp, #8]\n\tldr r3, [sp, #12]\n\tadd sp, sp, #16\n\tpop {r6, pc}");                   \
  }
DIVIDE(__aeabi_uldivmod, ortc_divide)
DIVIDE(__aeabi_ldivmod, ortc_divide_signed)
#endif
