// Floating-point instructions against the host's arithmetic, bit by bit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cfenv>

#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

using FloatTest = OperationTest;

float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
/// An operation on operands that the compiler cannot see through.
template <class T, class Operation> T rounded(int mode, Operation operation) {
  std::fesetround(mode);
  volatile T result = operation();
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_F(FloatTest, SingleArithmetic) {
  check2<float, float, float>("add.rn.f32 %y, %x0, %x1;", [](float a, float b) { return a + b; });
  check2<float, float, float>("sub.f32 %y, %x0, %x1;", [](float a, float b) { return a - b; });
  check2<float, float, float>("mul.f32 %y, %x0, %x1;", [](float a, float b) { return a * b; });
  check2<float, float, float>("div.rn.f32 %y, %x0, %x1;", [](float a, float b) { return a / b; });
  check3<float, float, float, float>("fma.rn.f32 %y, %x0, %x1, %x2;",
                                     [](float a, float b, float c) { return std::fma(a, b, c); });
  check1<float, float>("sqrt.rn.f32 %y, %x0;", [](float a) { return std::sqrt(a); });
  check1<float, float>("rcp.rn.f32 %y, %x0;", [](float a) { return 1.0f / a; });
}

TEST_F(FloatTest, PairsOfSingles) {
  // Element k stands beside element k + 1.
  std::vector<float> a, b, c;
  for (float x : interesting<float>())
    for (float y : interesting<float>()) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(interesting<float>()[a.size() * 7 % 30]);
    }
  const size_t count = a.size();
  auto pairUp = [&](const std::vector<float> &values) {
    std::vector<uint64_t> pairs;
    for (size_t k = 0; k < count; ++k)
      pairs.push_back(uint64_t(bitCast<uint32_t>(values[(k + 1) % count])) << 32 |
                      bitCast<uint32_t>(values[k]));
    return pairs;
  };
  for (const char *ftz : {"", ".ftz"})
    for (const char *name : {"add.rn", "sub.rn", "mul.rn", "fma.rn"}) {
      const std::string op = std::string(name) + ftz,
                        list = *name == 'f' ? " %y, %x0, %x1, %x2;" : " %y, %x0, %x1;";
      const std::vector<uint32_t> singles = compute<uint32_t>(op + ".f32" + list, a, b, c);
      const std::vector<uint64_t> pairs =
          compute<uint64_t>(op + ".f32x2" + list, pairUp(a), pairUp(b), pairUp(c));
      for (size_t k = 0; k < count; ++k)
        ASSERT_EQ(pairs[k], uint64_t(singles[(k + 1) % count]) << 32 | singles[k]) << op << " " << k;
    }
}

TEST_F(FloatTest, DoubleArithmetic) {
  check2<double, double, double>("add.rn.f64 %y, %x0, %x1;", [](double a, double b) { return a + b; });
  check2<double, double, double>("mul.f64 %y, %x0, %x1;", [](double a, double b) { return a * b; });
  check2<double, double, double>("div.rn.f64 %y, %x0, %x1;", [](double a, double b) { return a / b; });
  check3<double, double, double, double>("fma.rn.f64 %y, %x0, %x1, %x2;",
                                         [](double a, double b, double c) { return std::fma(a, b, c); });
  check1<double, double>("sqrt.rn.f64 %y, %x0;", [](double a) { return std::sqrt(a); });
  check2<double, double, double>("min.f64 %y, %x0, %x1;", [](double a, double b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
  });
}

TEST_F(FloatTest, FlushesDenormals) {
  check2<float, float, float>("add.ftz.f32 %y, %x0, %x1;",
                              [](float a, float b) { return flush(flush(a) + flush(b)); });
  check2<float, float, float>("mul.rn.ftz.f32 %y, %x0, %x1;",
                              [](float a, float b) { return flush(flush(a) * flush(b)); });
  check2<float, float, float>("div.rn.ftz.f32 %y, %x0, %x1;",
                              [](float a, float b) { return flush(flush(a) / flush(b)); });
  check3<float, float, float, float>("fma.rn.ftz.f32 %y, %x0, %x1, %x2;", [](float a, float b, float c) {
    return flush(std::fma(flush(a), flush(b), flush(c)));
  });
  check2<uint32_t, float, float>("setp.gt.ftz.f32 %p1, %x0, %x1; selp.b32 %y, 1, 0, %p1;",
                                 [](float a, float b) { return flush(a) > flush(b); });
}

TEST_F(FloatTest, OtherRoundingModes) {
  check2<float, float, float>("add.rz.f32 %y, %x0, %x1;", [](float a, float b) {
    return rounded<float>(FE_TOWARDZERO, [&] {
      volatile float x = a, y = b;
      return x + y;
    });
  });
  check2<float, float, float>("mul.rp.f32 %y, %x0, %x1;", [](float a, float b) {
    return rounded<float>(FE_UPWARD, [&] {
      volatile float x = a, y = b;
      return x * y;
    });
  });
  check2<double, double, double>("div.rm.f64 %y, %x0, %x1;", [](double a, double b) {
    return rounded<double>(FE_DOWNWARD, [&] {
      volatile double x = a, y = b;
      return x / y;
    });
  });
}

TEST_F(FloatTest, Extremes) {
  auto max = [](float a, float b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
  };
  check2<float, float, float>("max.f32 %y, %x0, %x1;", max);
  check2<float, float, float>("max.NaN.f32 %y, %x0, %x1;",
                              [&](float a, float b) { return a != a || b != b ? NAN : max(a, b); });
  check2<float, float, float>("min.f32 %y, %x0, %x1;", [](float a, float b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
  });
}

TEST_F(FloatTest, Signs) {
  check1<uint32_t, float>("abs.f32 %y, %x0;", [](float a) { return bitCast<uint32_t>(a) & 0x7fffffffu; });
  check1<uint32_t, float>("neg.f32 %y, %x0;", [](float a) { return bitCast<uint32_t>(a) ^ 0x80000000u; });
  check1<uint64_t, double>("neg.f64 %y, %x0;",
                           [](double a) { return bitCast<uint64_t>(a) ^ uint64_t(1) << 63; });
  check2<uint32_t, float, float>("copysign.f32 %y, %x0, %x1;", [](float a, float b) {
    return (bitCast<uint32_t>(a) & 0x80000000u) | (bitCast<uint32_t>(b) & 0x7fffffffu);
  });
  check1<float, float>("add.sat.f32 %y, %x0, 0f00000000;",
                       [](float a) { return a != a ? 0.0f : std::fmin(std::fmax(a + 0.0f, 0.0f), 1.0f); });
}

TEST_F(FloatTest, ComparisonsKnowNaNs) {
  auto select = [](const std::string &name) {
    return "setp." + name + " %p1, %x0, %x1; selp.b32 %y, 1, 0, %p1;";
  };
  auto isUnordered = [](double a, double b) { return a != a || b != b; };
  auto check = [&](const std::string &name, auto is) {
    check2<uint32_t, float, float>(select(name + ".f32"), is);
    check2<uint32_t, double, double>(select(name + ".f64"), is);
  };
  check("eq", [](double a, double b) { return a == b; });
  check("ne", [&](double a, double b) { return a != b && !isUnordered(a, b); });
  check("lt", [](double a, double b) { return a < b; });
  check("le", [](double a, double b) { return a <= b; });
  check("gt", [](double a, double b) { return a > b; });
  check("ge", [](double a, double b) { return a >= b; });
  check("equ", [&](double a, double b) { return a == b || isUnordered(a, b); });
  check("neu", [](double a, double b) { return a != b; });
  check("ltu", [&](double a, double b) { return a < b || isUnordered(a, b); });
  check("leu", [&](double a, double b) { return a <= b || isUnordered(a, b); });
  check("gtu", [&](double a, double b) { return a > b || isUnordered(a, b); });
  check("geu", [&](double a, double b) { return a >= b || isUnordered(a, b); });
  check("num", [&](double a, double b) { return !isUnordered(a, b); });
  check("nan", isUnordered);
}

TEST_F(FloatTest, Classes) {
  auto select = [](const std::string &name) {
    return "testp." + name + ".f32 %p1, %x0; selp.b32 %y, 1, 0, %p1;";
  };
  check1<uint32_t, float>(select("finite"), [](float a) { return std::isfinite(a); });
  check1<uint32_t, float>(select("infinite"), [](float a) { return std::isinf(a); });
  check1<uint32_t, float>(select("notanumber"), [](float a) { return std::isnan(a); });
  check1<uint32_t, float>(select("subnormal"), [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
  check1<uint32_t, float>(select("normal"), [](float a) { return std::isnormal(a); });
}

TEST_F(FloatTest, ApproximationsAreClose) {
  std::vector<float> x;
  for (int k = -40; k <= 40; ++k)
    x.push_back(float(k) * 0.3f + 0.01f);
  auto compare = [&](const std::string &body, auto exact) {
    std::vector<float> y = compute<float>(body, x);
    for (size_t k = 0; k < x.size(); ++k) {
      float expected = float(exact(double(x[k])));
      if (expected != expected)
        continue;
      // 2^-20: looser than what the instructions promise.
      EXPECT_NEAR(y[k], expected, std::fabs(expected) * 0x1p-20f + 0x1p-20f) << body << " " << x[k];
    }
  };
  compare("ex2.approx.f32 %y, %x0;", [](double a) { return std::exp2(a); });
  compare("ex2.approx.ftz.f32 %y, %x0;", [](double a) { return std::exp2(a); });
  compare("lg2.approx.f32 %y, %x0;", [](double a) { return std::log2(a); });
  compare("rsqrt.approx.f32 %y, %x0;", [](double a) { return 1 / std::sqrt(a); });
  compare("sqrt.approx.f32 %y, %x0;", [](double a) { return std::sqrt(a); });
  compare("rcp.approx.ftz.f32 %y, %x0;", [](double a) { return 1 / a; });
  compare("sin.approx.f32 %y, %x0;", [](double a) { return std::sin(a); });
  compare("cos.approx.f32 %y, %x0;", [](double a) { return std::cos(a); });
  compare("tanh.approx.f32 %y, %x0;", [](double a) { return std::tanh(a); });
  compare("div.full.f32 %y, %x0, %x0;", [](double a) { return a / a; });
}

} // namespace
} // namespace ortc::emulator::test
