// Loop kernels against plain loops in double precision, over odd shapes and all targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/codegen/loop/LoopFixture.h"

#include <cmath>

using namespace ortc::codegen;
using namespace ortc::codegen::test;

namespace {

std::string dims(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text;
}

TEST(LoopKernelTest, ElementwiseOfAllLengths) {
  for (int64_t n : {1, 3, 16, 31, 64, 65, 200, 100003}) {
    std::string t = "tensor<" + dims({n}) + "f32>";
    std::string text = "func.func @k(%x: " + t + ", %y: " + t + ", %s: tensor<f32>) -> " + t + " {\n"
                       "%b = nn.broadcast %s dims = [] : tensor<f32> -> " + t + "\n"
                       "%p = arith.mulf %x, %b : " + t + "\n%q = arith.addf %p, %y : " + t + "\n"
                       "%e = math.tanh %q : " + t + "\nreturn %e : " + t + "\n}";
    auto x = randomFloats(n, 1), y = randomFloats(n, 2);
    auto out = runEverywhere(text, {bufferOf(x), bufferOf(y), bufferOf(std::vector<float>{0.75f})});
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i)
      want[i] = std::tanh(double(x[i]) * 0.75 + y[i]);
    expectClose(out[0], want, 1e-6, "tanh " + std::to_string(n));
  }
}

TEST(LoopKernelTest, BiasAndMask) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{7, 5}, {33, 64}, {9, 100}, {300, 70}}) {
    std::string t = "tensor<" + dims({rows, columns}) + "f32>", v = "tensor<" + dims({columns}) + "f32>";
    std::string mask = "tensor<" + dims({rows, columns}) + "i1>";
    std::string text = "func.func @k(%x: " + t + ", %b: " + v + ") -> (" + t + ", " + mask + ") {\n"
                       "%z = arith.constant dense<0.0> : " + t + "\n"
                       "%s = nn.broadcast %b dims = [1] : " + v + " -> " + t + "\n"
                       "%a = arith.addf %x, %s : " + t + "\n"
                       "%c = arith.cmpf ugt, %a, %z : " + t + "\n"
                       "%r = arith.select %c, %a, %z : " + mask + ", " + t + "\n"
                       "return %r, %c : " + t + ", " + mask + "\n}";
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

TEST(LoopKernelTest, ReductionsOverRowsAndColumns) {
  struct Case { int64_t outer, reduced, inner; };
  for (Case c : {Case{5, 7, 1}, {1, 1000, 1}, {33, 100, 1}, {300, 129, 1}, {2, 50257, 1}, {1, 300, 70}, {4, 1000, 33}, {3, 5, 16}, {1, 7, 3}}) {
    for (const char *kind : {"sum", "max", "min"}) {
      std::string in = "tensor<" + dims({c.outer, c.reduced, c.inner}) + "f32>", result = "tensor<" + dims({c.outer, c.inner}) + "f32>";
      std::string text = "func.func @k(%x: " + in + ") -> " + result + " {\n%s = arith.mulf %x, %x : " + in + "\n"
                         "%d = arith.subf %s, %x : " + in + "\n"
                         "%r = nn.reduce " + kind + " %d axes = [1] : " + in + " -> " + result + "\nreturn %r : " + result + "\n}";
      auto x = randomFloats(c.outer * c.reduced * c.inner, 3);
      auto out = runEverywhere(text, {bufferOf(x)});
      std::vector<double> want;
      for (int64_t o = 0; o < c.outer; ++o)
        for (int64_t i = 0; i < c.inner; ++i) {
          double total = kind[0] == 's' ? 0 : kind[1] == 'a' ? -INFINITY : INFINITY;
          for (int64_t r = 0; r < c.reduced; ++r) {
            double v = x[(o * c.reduced + r) * c.inner + i], d = v * v - v;
            total = kind[0] == 's' ? total + d : kind[1] == 'a' ? std::max(total, d) : std::min(total, d);
          }
          want.push_back(total);
        }
      // Sums of n terms in a tree: the error of one path.
      expectClose(out[0], want, 2e-6, std::string(kind) + " " + in);
    }
  }
}

TEST(LoopKernelTest, ReductionOverSeparatedDimensions) {
  std::string text = R"(func.func @k(%x: tensor<6x5x37xf32>) -> tensor<5xf32> {
    %r = nn.reduce sum %x axes = [0, 2] : tensor<6x5x37xf32> -> tensor<5xf32>
    return %r : tensor<5xf32> })";
  auto x = randomFloats(6 * 5 * 37, 4);
  auto out = runEverywhere(text, {bufferOf(x)});
  std::vector<double> want(5, 0.0);
  for (int n = 0; n < 6; ++n)
    for (int c = 0; c < 5; ++c)
      for (int s = 0; s < 37; ++s)
        want[c] += x[(n * 5 + c) * 37 + s];
  expectClose(out[0], want, 1e-6, "sum over 0 and 2");
}

TEST(LoopKernelTest, NanPassesThroughMaxAndMin) {
  for (int64_t n : {5, 40, 100})
    for (int64_t where : {int64_t(0), n / 2, n - 1})
      for (const char *kind : {"max", "min"}) {
        std::string in = "tensor<2x" + dims({n}) + "f32>";
        std::string text = "func.func @k(%x: " + in + ") -> tensor<2xf32> {\n%r = nn.reduce " + kind + " %x axes = [1] : " + in +
                           " -> tensor<2xf32>\nreturn %r : tensor<2xf32>\n}";
        auto x = randomFloats(2 * n, 5);
        x[where] = NAN;
        auto y = valuesOf<float>(CompiledLoop(text, runnableTargets().back()).run({bufferOf(x)})[0]);
        EXPECT_TRUE(std::isnan(y[0])) << n << " " << where;
        EXPECT_FALSE(std::isnan(y[1]));
      }
}

std::string softmaxText(int64_t rows, int64_t columns) {
  std::string t = "tensor<" + dims({rows, columns}) + "f32>", v = "tensor<" + dims({rows}) + "f32>";
  return "func.func @k(%x: " + t + ") -> (" + t + ", " + v + ") {\n"
         "%m = nn.reduce max %x axes = [1] : " + t + " -> " + v + "\n"
         "%mb = nn.broadcast %m dims = [0] : " + v + " -> " + t + "\n"
         "%d = arith.subf %x, %mb : " + t + "\n%e = math.exp %d : " + t + "\n"
         "%s = nn.reduce sum %e axes = [1] : " + t + " -> " + v + "\n"
         "%sb = nn.broadcast %s dims = [0] : " + v + " -> " + t + "\n"
         "%y = arith.divf %e, %sb : " + t + "\n%l = math.log %s : " + v + "\n%z = arith.addf %l, %m : " + v + "\n"
         "return %y, %z : " + t + ", " + v + "\n}";
}

TEST(LoopKernelTest, SoftmaxInOneKernel) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{3, 10}, {40, 128}, {5, 1001}, {200, 33}}) {
    auto x = randomFloats(rows * columns, 6, -5, 5);
    auto out = runEverywhere(softmaxText(rows, columns), {bufferOf(x)});
    std::vector<double> want, logs;
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < columns; ++j)
        sum += std::exp(double(x[i * columns + j]));
      for (int64_t j = 0; j < columns; ++j)
        want.push_back(std::exp(double(x[i * columns + j])) / sum);
      logs.push_back(std::log(sum));
    }
    expectClose(out[0], want, 1e-6, "softmax");
    expectClose(out[1], logs, 1e-6, "log of the sum");
  }
}

} // namespace
