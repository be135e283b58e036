// Arithmetic of loop kernels on every element, against plain loops: lengths, types, operands at the limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/loop/LoopFixture.h"

#include "dialects/nn/Philox.h"

#include <array>
#include <cmath>

using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

TEST(LoopArithmeticTest, ElementwiseOfAllLengths) {
  for (int64_t n : {1, 3, 16, 31, 64, 65, 200, 100003}) {
    std::string t = "tensor<" + dims({n}) + "f32>";
    std::string text = "func.func @k(%x: " + t + ", %y: " + t + ", %s: tensor<f32>) -> " + t +
                       " {\n"
                       "%b = nn.broadcast %s dims = [] : tensor<f32> -> " +
                       t +
                       "\n"
                       "%p = arith.mulf %x, %b : " +
                       t + "\n%q = arith.addf %p, %y : " + t +
                       "\n"
                       "%e = math.tanh %q : " +
                       t + "\nreturn %e : " + t + "\n}";
    auto x = randomFloats(n, 1), y = randomFloats(n, 2);
    auto out = runEverywhere(text, {bufferOf(x), bufferOf(y), bufferOf(std::vector<float>{0.75f})});
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i)
      want[i] = std::tanh(double(x[i]) * 0.75 + y[i]);
    expectClose(out[0], want, 1e-6, "tanh " + std::to_string(n));
  }
}

TEST(LoopArithmeticTest, BiasAndMask) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{7, 5}, {33, 64}, {9, 100}, {300, 70}}) {
    std::string t = "tensor<" + dims({rows, columns}) + "f32>", v = "tensor<" + dims({columns}) + "f32>";
    std::string mask = "tensor<" + dims({rows, columns}) + "i1>";
    std::string text = "func.func @k(%x: " + t + ", %b: " + v + ") -> (" + t + ", " + mask +
                       ") {\n"
                       "%z = arith.constant dense<0.0> : " +
                       t +
                       "\n"
                       "%s = nn.broadcast %b dims = [1] : " +
                       v + " -> " + t +
                       "\n"
                       "%a = arith.addf %x, %s : " +
                       t +
                       "\n"
                       "%c = arith.cmpf ugt, %a, %z : " +
                       t +
                       "\n"
                       "%r = arith.select %c, %a, %z : " +
                       mask + ", " + t +
                       "\n"
                       "return %r, %c : " +
                       t + ", " + mask + "\n}";
    auto x = randomFloats(rows * columns, 1), b = randomFloats(columns, 2);
    auto out = runEverywhere(text, {bufferOf(x), bufferOf(b)});
    auto y = valuesOf<float>(out[0]);
    auto m = valuesOf<int8_t>(out[1]);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float sum = x[i * columns + j] + b[j];
        ASSERT_EQ(y[i * columns + j], sum > 0 ? sum : 0);
        ASSERT_EQ(m[i * columns + j], sum > 0);
      }
  }
}

TEST(LoopArithmeticTest, NarrowTypesAndIntegers) {
  // 1.5 in f16 is 0x3e00, -2 is 0xc000; doubled and added up in f32.
  std::vector<uint16_t> x(35, 0x3e00);
  x[34] = 0xc000;
  auto y = valuesOf<uint16_t>(runEverywhere(R"(func.func @k(%x: tensor<35xf16>) -> tensor<35xf16> {
    %w = arith.extf %x : tensor<35xf16> to tensor<35xf32>
    %d = arith.addf %w, %w : tensor<35xf32>
    %y = arith.truncf %d : tensor<35xf32> to tensor<35xf16>
    return %y : tensor<35xf16> })",
                                            {bufferOf(x)})[0]);
  EXPECT_EQ(y[0], 0x4200);  // 3
  EXPECT_EQ(y[34], 0xc400); // -4
  auto sum = valuesOf<uint16_t>(runEverywhere(R"(func.func @k(%x: tensor<35xf16>) -> tensor<f16> {
    %y = nn.reduce sum %x axes = [0] : tensor<35xf16> -> tensor<f16>
    return %y : tensor<f16> })",
                                              {bufferOf(x)})[0]);
  EXPECT_EQ(sum[0], 0x5220); // 49
  std::vector<int64_t> numbers = randomIndices(50, 24, 1000);
  auto z = valuesOf<int32_t>(runEverywhere(R"(func.func @k(%x: tensor<50xi64>) -> tensor<50xi32> {
    %c = arith.constant dense<7> : tensor<50xi64>
    %r = arith.remsi %x, %c : tensor<50xi64>
    %y = arith.trunci %r : tensor<50xi64> to tensor<50xi32>
    return %y : tensor<50xi32> })",
                                           {bufferOf(numbers)})[0]);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(z[i], numbers[i] % 7);
}

/// Published answers (Random123, philox2x32-10).
static_assert(ortc::nn::philox({0, 0}, 0) == std::array<uint32_t, 2>{0xff1dae59, 0x6cd10df2});
static_assert(ortc::nn::philox({~0u, ~0u}, ~0u) == std::array<uint32_t, 2>{0x2c3f628b, 0xab4fd7ad});
static_assert(ortc::nn::philox({0x243f6a88, 0x85a308d3}, 0x13198a2e) ==
              std::array<uint32_t, 2>{0xdd7ce038, 0xf62a4c12});

/// The element's position is the counter, however the loops run: across rows, transposed, in parts.
TEST(LoopArithmeticTest, RandomBits) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {7, 5}, {33, 64}, {300, 129}}) {
    std::string t = "tensor<" + dims({rows, columns}) + "i32>",
                turned = "tensor<" + dims({columns, rows}) + "i32>";
    std::string text = "func.func @k(%step: tensor<i64>) -> (" + t + ", " + turned + ", " + turned +
                       ") {\n"
                       "%a, %b = nn.random %step key = 4041519662 : tensor<i64> -> " +
                       t +
                       "\n"
                       "%c = nn.transpose %b perm = [1, 0] : " +
                       t + " -> " + turned +
                       "\n"
                       "%d = nn.reverse %c axes = [0] : " +
                       turned +
                       "\n"
                       "return %a, %c, %d : " +
                       t + ", " + turned + ", " + turned + "\n}";
    const std::vector<int64_t> steps{0, 1, (int64_t(5) << 32) + 0x85a308d3};
    std::vector<std::vector<Buffer>> inputs;
    for (int64_t step : steps)
      inputs.push_back({bufferOf(std::vector<int64_t>{step})});
    for (auto [step, out] : llvm::zip_equal(steps, runEverywhere(text, inputs))) {
      auto first = valuesOf<int32_t>(out[0]), second = valuesOf<int32_t>(out[1]),
           reversed = valuesOf<int32_t>(out[2]);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          auto want = ortc::nn::philox({uint32_t(i * columns + j), uint32_t(step)}, 4041519662u);
          ASSERT_EQ(uint32_t(first[i * columns + j]), want[0]);
          ASSERT_EQ(uint32_t(second[j * rows + i]), want[1]);
          ASSERT_EQ(uint32_t(reversed[(columns - 1 - j) * rows + i]), want[1]);
        }
    }
  }
}

/// No operand of these may trap or mean nothing: the header of DefinedArithmetic.h says what they give.
TEST(LoopArithmeticTest, IntegerArithmeticHasAResultForEveryOperand) {
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> x, y;
  for (int64_t a : {int64_t(0), int64_t(1), int64_t(-7), int64_t(100), least, most})
    for (int64_t b :
         {int64_t(0), int64_t(1), int64_t(-1), int64_t(2), int64_t(-3), int64_t(64), int64_t(70), least}) {
      x.push_back(a);
      y.push_back(b);
    }
  std::string t = tensorOf({static_cast<int64_t>(x.size())}, "i64");
  auto run = [&](const std::string &op) {
    return valuesOf<int64_t>(runEverywhere("func.func @k(%x: " + t + ", %y: " + t + ") -> " + t +
                                               " {\n%z = " + op + " %x, %y : " + t + "\nreturn %z : " + t +
                                               "\n}",
                                           {bufferOf(x), bufferOf(y)})[0]);
  };
  auto quotient = run("arith.divsi"), rest = run("arith.remsi"), left = run("arith.shli"),
       right = run("arith.shrui"), power = run("math.ipowi");
  for (size_t i = 0; i < x.size(); ++i) {
    auto a = static_cast<uint64_t>(x[i]);
    bool special = y[i] == 0 || y[i] == -1, fits = y[i] >= 0 && y[i] < 64;
    EXPECT_EQ(quotient[i], y[i] == 0    ? 0
                           : y[i] == -1 ? static_cast<int64_t>(-a)
                                        : x[i] / y[i])
        << x[i] << " / " << y[i];
    EXPECT_EQ(rest[i], special ? 0 : x[i] % y[i]) << x[i] << " % " << y[i];
    EXPECT_EQ(left[i], fits ? static_cast<int64_t>(a << y[i]) : 0) << x[i] << " << " << y[i];
    EXPECT_EQ(right[i], fits ? static_cast<int64_t>(a >> y[i]) : 0) << x[i] << " >> " << y[i];
    uint64_t want = 1;
    for (int64_t k = 0; k < y[i]; ++k)
      want *= a;
    if (y[i] < 0)
      want = x[i] == 1 ? 1 : 0;
    EXPECT_EQ(power[i], static_cast<int64_t>(want)) << x[i] << " ^ " << y[i];
  }
}

TEST(LoopArithmeticTest, CastsFromFloatsSaturate) {
  std::vector<float> x = {0.0f,   -0.0f,         1.9f,          -1.9f,          -0.5f,
                          127.5f, 128.0f,        -128.9f,       -129.0f,        255.9f,
                          256.0f, 2147483520.0f, 2147483648.0f, -2147483648.0f, 1e10f,
                          -1e10f, 1e30f,         INFINITY,      -INFINITY,      NAN};
  std::string from = tensorOf({static_cast<int64_t>(x.size())}, "f32");
  auto expectCast = [&](auto zero, const std::string &op) {
    using T = decltype(zero);
    std::string to = tensorOf({static_cast<int64_t>(x.size())}, "i" + std::to_string(8 * sizeof(T)));
    auto got = valuesOf<T>(runEverywhere("func.func @k(%x: " + from + ") -> " + to + " {\n%y = " + op +
                                             " %x : " + from + " to " + to + "\nreturn %y : " + to + "\n}",
                                         {bufferOf(x)})[0]);
    for (size_t i = 0; i < x.size(); ++i) {
      long double whole = std::isnan(x[i]) ? 0 : std::trunc(static_cast<long double>(x[i]));
      whole = std::min<long double>(std::max<long double>(whole, std::numeric_limits<T>::min()),
                                    std::numeric_limits<T>::max());
      EXPECT_EQ(got[i], static_cast<T>(whole)) << op << " " << x[i];
    }
  };
  expectCast(int8_t(), "arith.fptosi");
  expectCast(int32_t(), "arith.fptosi");
  expectCast(int64_t(), "arith.fptosi");
  expectCast(uint8_t(), "arith.fptoui");
  expectCast(uint32_t(), "arith.fptoui");
}

TEST(LoopArithmeticTest, FloatRemainderIsExact) {
  std::vector<float> x, y;
  for (float a : {0.0f, -0.0f, 5.5f, -5.5f, 1e10f, 1e20f, -3.4e38f, 1e-40f, INFINITY, NAN})
    for (float b : {3.0f, -3.0f, 0.1f, 1e-45f, 7e37f, 0.0f, INFINITY, NAN}) {
      x.push_back(a);
      y.push_back(b);
    }
  std::string t = tensorOf({static_cast<int64_t>(x.size())}, "f32");
  auto got =
      valuesOf<float>(runEverywhere("func.func @k(%x: " + t + ", %y: " + t + ") -> " + t +
                                        " {\n%z = arith.remf %x, %y : " + t + "\nreturn %z : " + t + "\n}",
                                    {bufferOf(x), bufferOf(y)})[0]);
  for (size_t i = 0; i < x.size(); ++i) {
    float want = std::fmod(x[i], y[i]);
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got[i])
                                 : got[i] == want && std::signbit(got[i]) == std::signbit(want))
        << x[i] << " mod " << y[i] << " = " << got[i];
  }
}

/// Every link reads the one before it twice: there are 2^50 paths through the expression.
TEST(LoopArithmeticTest, SharedPartsAreVisitedOnce) {
  for (bool reduces : {false, true}) {
    std::string t = tensorOf({9, 70}, "f32"), row = tensorOf({9}, "f32");
    std::string text = "func.func @k(%v0: " + t + ") -> " + (reduces ? row : t) +
                       " {\n%h = arith.constant dense<0.5> : " + t + "\n";
    for (int i = 0; i < 50; ++i) {
      std::string from = "%v" + std::to_string(i), half = "%m" + std::to_string(i),
                  to = "%v" + std::to_string(i + 1);
      text += half + " = arith.mulf " + from + ", %h : " + t + "\n" + to + " = arith.addf " + half + ", " +
              half + " : " + t + "\n";
    }
    text += reduces
                ? "%s = nn.reduce sum %v50 axes = [1] : " + t + " -> " + row + "\nreturn %s : " + row + "\n}"
                : "return %v50 : " + t + "\n}";
    auto x = randomFloats(9 * 70, 27);
    auto out = runEverywhere(text, {bufferOf(x)});
    std::vector<double> want(reduces ? 9 : 9 * 70, 0.0);
    for (size_t i = 0; i < x.size(); ++i)
      want[reduces ? i / 70 : i] += x[i];
    expectClose(out[0], want, reduces ? 1e-5 : 0, reduces ? "sums" : "elements");
  }
}

} // namespace
