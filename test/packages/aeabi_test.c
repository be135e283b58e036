/* Arithmetic of runtime/freestanding/aeabi.c, whose functions are renamed to own_*, against the processor's own.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define AEABI __attribute__((pcs("aapcs")))
AEABI uint64_t own_f2d(uint32_t bits);
AEABI uint32_t own_d2f(uint64_t bits);
AEABI uint64_t own_l2d(int64_t value);
AEABI int64_t own_d2lz(uint64_t bits);
AEABI int own_dcmple(uint64_t a, uint64_t b);
AEABI int own_dcmplt(uint64_t a, uint64_t b);
AEABI int own_dcmpge(uint64_t a, uint64_t b);
AEABI int own_dcmpgt(uint64_t a, uint64_t b);
AEABI int own_dcmpeq(uint64_t a, uint64_t b);
AEABI int own_dcmpun(uint64_t a, uint64_t b);
uint64_t own_llsl(uint64_t value, int by);
uint64_t own_llsr(uint64_t value, int by);

static int failures;
static void check(const char *name, uint64_t given, uint64_t wanted, uint64_t found) {
  if (wanted != found && failures++ < 10)
    printf("%s of %016llx: wanted %016llx, found %016llx\n", name, (unsigned long long)given,
           (unsigned long long)wanted, (unsigned long long)found);
}

static double doubleOf(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static uint64_t bitsOf(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static uint32_t floatBitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state ^ *state >> 29;
}

static void checkAll(uint64_t bits, uint64_t other) {
  double a = doubleOf(bits), b = doubleOf(other);
  uint32_t narrow = own_d2f(bits);
  if (a == a)
    check("d2f", bits, floatBitsOf((float)a), narrow);
  else
    check("d2f of NaN", bits, 1, floatOf(narrow) != floatOf(narrow));
  float f = floatOf((uint32_t)bits);
  if (f == f)
    check("f2d", (uint32_t)bits, bitsOf((double)f), own_f2d((uint32_t)bits));
  else
    check("f2d of NaN", bits, 1, doubleOf(own_f2d((uint32_t)bits)) != doubleOf(own_f2d((uint32_t)bits)));
  check("l2d", bits, bitsOf((double)(int64_t)bits), own_l2d((int64_t)bits));
  if (a > -9.2e18 && a < 9.2e18)
    check("d2lz", bits, (uint64_t)(int64_t)a, (uint64_t)own_d2lz(bits));
  check("dcmple", bits, a <= b, own_dcmple(bits, other));
  check("dcmplt", bits, a < b, own_dcmplt(bits, other));
  check("dcmpge", bits, a >= b, own_dcmpge(bits, other));
  check("dcmpgt", bits, a > b, own_dcmpgt(bits, other));
  check("dcmpeq", bits, a == b, own_dcmpeq(bits, other));
  check("dcmpun", bits, a != a || b != b, own_dcmpun(bits, other));
}

int main(void) {
  const uint64_t special[] = {
      0, (uint64_t)1 << 63, 1, 0x000fffffffffffff,
      0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff,
      0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0xfff8000000000000,
      0x36a0000000000000, 0x36a0000000000001, 0x3690000000000000, 0x380fffffffffffff,
      0x3810000000000000, 0x47efffffefffffff, 0x47effffff0000000, 0x3ff0000010000000,
      0x3ff0000030000000, 0x43dfffffffffffff,
  };
  enum { SPECIAL = sizeof special / sizeof *special };
  for (int i = 0; i < SPECIAL; i++)
    for (int k = 0; k < SPECIAL; k++)
      checkAll(special[i], special[k]);
  uint64_t state = 1;
  for (int i = 0; i < 300000; i++) {
    uint64_t bits = next(&state), other = i % 3 ? next(&state) : bits ^ (uint64_t)1 << (bits & 63);
    if (i % 2) /* exponents that float32 has, and integers */
      bits = (bits & ~((uint64_t)0x7ff << 52)) | (0x360 + (bits >> 20) % 0x120) << 52;
    checkAll(bits, other);
    int by = (int)(other & 63);
    check("llsl", bits, bits << by, own_llsl(bits, by));
    check("llsr", bits, bits >> by, own_llsr(bits, by));
  }
  return failures != 0;
}
