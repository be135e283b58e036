/* Conversions of 64-bit integers that 32-bit Arm has no instructions for, as its run-time ABI names them: compilers
 * call these functions and take them from their own library elsewhere.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#if defined(__arm__)
#include <stdint.h>

#define HELPER __attribute__((visibility("hidden"), used))
#define SOFT __attribute__((pcs("aapcs"))) /* these never take floats in registers of their own */

/* Every step is exact but the last sum. */
HELPER SOFT double __aeabi_l2d(int64_t value) {
  return (double)(int32_t)(value >> 32) * 4294967296.0 + (double)(uint32_t)value;
}
HELPER SOFT double __aeabi_ul2d(uint64_t value) {
  return (double)(uint32_t)(value >> 32) * 4294967296.0 + (double)(uint32_t)value;
}

/* Towards zero; exact where 64 bits can hold it. */
HELPER SOFT int64_t __aeabi_d2lz(double value) {
  double size = value < 0 ? -value : value;
  uint32_t high = (uint32_t)(size / 4294967296.0);
  uint64_t bits = (uint64_t)high << 32 | (uint32_t)(size - (double)high * 4294967296.0);
  return (int64_t)(value < 0 ? -bits : bits);
}
#endif
