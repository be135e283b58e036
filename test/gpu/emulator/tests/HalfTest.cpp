// f16 and bf16 against exact arithmetic that is rounded once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

/// A small format: bits of its mantissa, least exponent of a normal number, number of exponents.
struct Format {
  const char *name;
  int mantissa, least, most;
};
constexpr Format kHalf = {"f16", 10, -14, 15}, kBrain = {"bf16", 7, -126, 127};

double decode(const Format &f, uint16_t bits) {
  int exponentBits = 15 - f.mantissa, exponent = bits >> f.mantissa & ((1 << exponentBits) - 1);
  int rest = bits & ((1 << f.mantissa) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponentBits) - 1)
    return rest ? NAN : sign * INFINITY;
  double value = exponent ? std::ldexp(1.0 + std::ldexp(rest, -f.mantissa), exponent - f.most)
                          : std::ldexp(rest, f.least - f.mantissa);
  return sign * value;
}

/// Exactly: a sum of two products or so, as a long double, which holds 64 bits.
uint16_t encode(const Format &f, long double value, bool isTruncated = false) {
  if (value != value)
    return 0x7fff;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  long double magnitude = std::fabs(value);
  uint16_t infinity = uint16_t(((1 << (15 - f.mantissa)) - 1) << f.mantissa);
  if (magnitude == 0 || std::isinf(magnitude))
    return uint16_t(sign | (magnitude == 0 ? 0 : infinity));
  int exponent = std::max(std::ilogb(magnitude), f.least);
  long double scaled = std::scalbn(magnitude, f.mantissa - exponent); // whole steps
  long double steps = isTruncated ? std::floor(scaled) : std::nearbyint(scaled);
  long double rounded = std::scalbn(steps, exponent - f.mantissa);
  if (rounded >= std::scalbn(2.0L, f.most))
    return uint16_t(sign | (isTruncated ? infinity - 1 : infinity));
  if (rounded < std::scalbn(1.0L, f.least))
    return uint16_t(sign | uint16_t(std::scalbn(rounded, f.mantissa - f.least)));
  int e = std::ilogb(rounded);
  return uint16_t(sign | ((e + f.most) << f.mantissa) |
                  (uint16_t(std::scalbn(rounded, f.mantissa - e)) & ((1 << f.mantissa) - 1)));
}

class HalfTest : public OperationTest {
protected:
  std::vector<uint16_t> values() {
    std::vector<uint16_t> all = {0,      0x8000, 1,      0x8001, 2,      0x3ff,  0x400,  0x7f,   0x80,
                                 0x3c00, 0x3f80, 0xbf80, 0xbc00, 0x3c01, 0x7bff, 0x7c00, 0xfc00, 0x7e00,
                                 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x6400, 0x4b80, 0x0401};
    std::mt19937 random(5);
    while (all.size() < 60)
      all.push_back(uint16_t(random()));
    return all;
  }
  /// `op` for single elements and for pairs.
  template <class Exact>
  void check(const Format &f, const std::string &op, int operands, Exact exact, bool hasPairs = true) {
    std::vector<uint16_t> a, b, c, all = values();
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < all.size(); ++j)
        a.push_back(all[i]), b.push_back(all[j]), c.push_back(all[(i * 7 + j * 3) % all.size()]);
    std::string list = operands == 1 ? "%x0" : operands == 2 ? "%x0, %x1" : "%x0, %x1, %x2";
    std::vector<uint16_t> y = compute<uint16_t>(op + "." + f.name + " %y, " + list + ";", a, b, c);
    auto expected = [&](size_t k) {
      return encode(
          f, exact((long double)decode(f, a[k]), (long double)decode(f, b[k]), (long double)decode(f, c[k])));
    };
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_EQ(y[k], expected(k)) << op << "." << f.name << std::hex << " " << a[k] << " " << b[k] << " "
                                   << c[k];
    if (!hasPairs)
      return;
    auto pairUp = [](const std::vector<uint16_t> &from) {
      std::vector<uint32_t> pairs;
      for (size_t k = 0; k < from.size(); ++k)
        pairs.push_back(uint32_t(from[(k + 1) % from.size()]) << 16 | from[k]);
      return pairs;
    };
    std::vector<uint32_t> both =
        compute<uint32_t>(op + "." + f.name + "x2 %y, " + list + ";", pairUp(a), pairUp(b), pairUp(c));
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_EQ(both[k], uint32_t(y[(k + 1) % a.size()]) << 16 | y[k]) << op << "." << f.name << "x2";
  }
};

using Exact = long double;

TEST_F(HalfTest, Arithmetic) {
  for (const Format &f : {kHalf, kBrain}) {
    check(f, "add", 2, [](Exact a, Exact b, Exact) { return a + b; });
    check(f, "sub", 2, [](Exact a, Exact b, Exact) { return a - b; });
    check(f, "mul", 2, [](Exact a, Exact b, Exact) { return a * b; });
    check(f, "fma.rn", 3, [](Exact a, Exact b, Exact c) { // exact where 64 bits are not: by rounding to odd
      Exact product = a * b, sum = product + c, back = sum - product,
            error = (product - (sum - back)) + (c - back);
      return error == 0 || error != error
                 ? sum
                 : std::nextafter(sum, error > 0 ? Exact(INFINITY) : -Exact(INFINITY));
    });
  }
}

TEST_F(HalfTest, Extremes) {
  auto max = [](Exact a, Exact b, Exact) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
  };
  for (const Format &f : {kHalf, kBrain}) {
    check(f, "max", 2, max);
    check(f, "max.NaN", 2,
          [&](Exact a, Exact b, Exact c) { return a != a || b != b ? Exact(NAN) : max(a, b, c); });
    check(f, "min", 2, [&](Exact a, Exact b, Exact c) { return a != a ? b : b != b ? a : -max(-a, -b, c); });
  }
}

TEST_F(HalfTest, SignsAreBits) {
  for (const char *t : {"f16", "bf16"}) {
    std::vector<uint16_t> a = values(),
                          negative = compute<uint16_t>(std::string("neg.") + t + " %y, %x0;", a);
    std::vector<uint16_t> positive = compute<uint16_t>(std::string("abs.") + t + " %y, %x0;", a);
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_EQ(negative[k], a[k] ^ 0x8000);
      EXPECT_EQ(positive[k], a[k] & 0x7fff);
    }
  }
}

TEST_F(HalfTest, ConversionsRoundOnce) {
  std::vector<float> a = interesting<float>();
  std::mt19937 random(3);
  for (int k = 0; k < 3000; ++k) // near what f16 and bf16 hold, ties among them
    a.push_back(bitCast<float>(uint32_t((100 + random() % 45) << 23 |
                                        (random() % 3 ? random() & 0x7fffff : (random() & 0x7ff) << 12))));
  for (const Format &f : {kHalf, kBrain}) {
    std::string t = f.name;
    std::vector<uint16_t> nearest = compute<uint16_t>("cvt.rn." + t + ".f32 %y, %x0;", a);
    std::vector<uint16_t> truncated = compute<uint16_t>("cvt.rz." + t + ".f32 %y, %x0;", a);
    std::vector<uint32_t> pairs = compute<uint32_t>("cvt.rn." + t + "x2.f32 %y, %x0, 0f3F800000;", a);
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_EQ(nearest[k], encode(f, a[k])) << t << " " << a[k];
      ASSERT_EQ(truncated[k], encode(f, a[k], true)) << t << " " << a[k];
      ASSERT_EQ(pairs[k], uint32_t(nearest[k]) << 16 | encode(f, 1.0L));
    }
    std::vector<double> d = interesting<double>();
    d.push_back(1 + std::ldexp(1, -f.mantissa - 1) + std::ldexp(1, -45)); // two roundings would go down
    std::vector<uint16_t> narrowed = compute<uint16_t>("cvt.rn." + t + ".f64 %y, %x0;", d);
    for (size_t k = 0; k < d.size(); ++k)
      ASSERT_EQ(narrowed[k], encode(f, d[k])) << t << " " << d[k];
    std::vector<uint16_t> small(1 << 16);
    for (size_t k = 0; k < small.size(); ++k)
      small[k] = uint16_t(k);
    std::vector<float> wide = compute<float>("cvt.f32." + t + " %y, %x0;", small);
    for (size_t k = 0; k < small.size(); ++k) {
      double exact = decode(f, small[k]);
      ASSERT_TRUE(exact == double(wide[k]) || (exact != exact && wide[k] != wide[k])) << k;
    }
  }
}

TEST_F(HalfTest, ComparesPairs) {
  std::vector<uint16_t> all = values();
  std::vector<uint32_t> a, b;
  for (uint16_t x : all)
    for (uint16_t y : all) {
      a.push_back(uint32_t(y) << 16 | x);
      b.push_back(uint32_t(x) << 16 | all[(x + y) % all.size()]);
    }
  for (const Format &f : {kHalf, kBrain}) {
    std::vector<uint32_t> y =
        compute<uint32_t>(std::string("setp.lt.") + f.name +
                              "x2 %p1|%p2, %x0, %x1; selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; "
                              "or.b32 %y, %r1, %r2;",
                          a, b);
    for (size_t k = 0; k < a.size(); ++k) {
      bool low = decode(f, uint16_t(a[k])) < decode(f, uint16_t(b[k]));
      bool high = decode(f, uint16_t(a[k] >> 16)) < decode(f, uint16_t(b[k] >> 16));
      ASSERT_EQ(y[k], uint32_t(low) + 2 * uint32_t(high));
    }
  }
}

} // namespace
} // namespace ortc::emulator::test
