/* Arithmetic of runtime/android/arm_helpers.c and runtime/freestanding/arm_division.c, whose functions are renamed to
 * own_*, against the compiler's own.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdio.h>

/* The two that give quotient and rest in four registers. */
#define DIVIDE(name, type)                                                                                   \
  static type name(type value, type by, type *rest) {                                                        \
    register uint32_t a __asm__("r0") = (uint32_t)value;                                                     \
    register uint32_t b __asm__("r1") = (uint32_t)((uint64_t)value >> 32);                                   \
    register uint32_t c __asm__("r2") = (uint32_t)by;                                                        \
    register uint32_t d __asm__("r3") = (uint32_t)((uint64_t)by >> 32);                                      \
    __asm__ volatile("bl own_" #name : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "r12", "lr", "cc", "memory");  \
    *rest = (type)((uint64_t)d << 32 | c);                                                                   \
    return (type)((uint64_t)b << 32 | a);                                                                    \
  }
DIVIDE(uldivmod, uint64_t)
DIVIDE(ldivmod, int64_t)
__attribute__((pcs("aapcs"))) double own_l2d(int64_t value);
__attribute__((pcs("aapcs"))) double own_ul2d(uint64_t value);
__attribute__((pcs("aapcs"))) int64_t own_d2lz(double value);

static int failures = 0;

static void check(uint64_t value, uint64_t by) {
  uint64_t rest;
  int64_t signedRest;
  int isGood = own_l2d((int64_t)value) == (double)(int64_t)value && own_ul2d(value) == (double)value;
  double number = (double)(int64_t)(value >> 1) / 3;
  isGood &= own_d2lz(number) == (int64_t)number && own_d2lz(-number) == (int64_t)-number;
  if (by) {
    isGood &= uldivmod(value, by, &rest) == value / by && rest == value % by;
    int64_t a = (int64_t)value, b = (int64_t)by;
    if (a != INT64_MIN || b != -1)
      isGood &= ldivmod(a, b, &signedRest) == a / b && signedRest == a % b;
  }
  if (!isGood && failures++ < 5)
    printf("FAILED %llx, %llx\n", (unsigned long long)value, (unsigned long long)by);
}

int main(void) {
  const uint64_t edges[] = {0, 1, 2, 3, 10, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX};
  for (int i = 0; i < 10; i++)
    for (int k = 0; k < 10; k++)
      check(edges[i], edges[k]);
  uint64_t state = 1; /* of xorshift */
  for (int i = 0; i < 100000; i++) {
    uint64_t words[2];
    for (int k = 0; k < 2; k++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      words[k] = state >> (state & 63);
    }
    check(words[0], words[1]);
  }
  return failures != 0;
}
