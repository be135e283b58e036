// Loop kernels against plain loops in double precision, over odd shapes and all targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/codegen/loop/LoopFixture.h"

#include "dialects/nn/Philox.h"

#include <array>
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

TEST(LoopKernelTest, BiasAndMask) {
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

TEST(LoopKernelTest, ReductionsOverRowsAndColumns) {
  struct Case {
    int64_t outer, reduced, inner;
  };
  for (Case c : {Case{5, 7, 1},
                 {1, 1000, 1},
                 {33, 100, 1},
                 {300, 129, 1},
                 {2, 50257, 1},
                 {1, 300, 70},
                 {4, 1000, 33},
                 {2, 90, 200},
                 {9, 90, 150},
                 {3, 5, 16},
                 {1, 7, 3}}) {
    for (const char *kind : {"sum", "max", "min"}) {
      std::string in = "tensor<" + dims({c.outer, c.reduced, c.inner}) + "f32>",
                  result = "tensor<" + dims({c.outer, c.inner}) + "f32>";
      std::string text = "func.func @k(%x: " + in + ") -> " + result + " {\n%s = arith.mulf %x, %x : " + in +
                         "\n"
                         "%d = arith.subf %s, %x : " +
                         in +
                         "\n"
                         "%r = nn.reduce " +
                         kind + " %d axes = [1] : " + in + " -> " + result + "\nreturn %r : " + result +
                         "\n}";
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
        std::string text = "func.func @k(%x: " + in + ") -> tensor<2xf32> {\n%r = nn.reduce " + kind +
                           " %x axes = [1] : " + in + " -> tensor<2xf32>\nreturn %r : tensor<2xf32>\n}";
        auto x = randomFloats(2 * n, 5);
        x[where] = NAN;
        auto y = valuesOf<float>(CompiledLoop(text, runnableTargets().back()).run({bufferOf(x)})[0]);
        EXPECT_TRUE(std::isnan(y[0])) << n << " " << where;
        EXPECT_FALSE(std::isnan(y[1]));
      }
}

std::string softmaxText(int64_t rows, int64_t columns) {
  std::string t = "tensor<" + dims({rows, columns}) + "f32>", v = "tensor<" + dims({rows}) + "f32>";
  return "func.func @k(%x: " + t + ") -> (" + t + ", " + v +
         ") {\n"
         "%m = nn.reduce max %x axes = [1] : " +
         t + " -> " + v +
         "\n"
         "%mb = nn.broadcast %m dims = [0] : " +
         v + " -> " + t +
         "\n"
         "%d = arith.subf %x, %mb : " +
         t + "\n%e = math.exp %d : " + t +
         "\n"
         "%s = nn.reduce sum %e axes = [1] : " +
         t + " -> " + v +
         "\n"
         "%sb = nn.broadcast %s dims = [0] : " +
         v + " -> " + t +
         "\n"
         "%y = arith.divf %e, %sb : " +
         t + "\n%l = math.log %s : " + v + "\n%z = arith.addf %l, %m : " + v +
         "\n"
         "return %y, %z : " +
         t + ", " + v + "\n}";
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

/// Every movement with a reference index function, on values that are their own positions.
struct Movement {
  std::string op;
  std::vector<int64_t> from, to;
  /// Position in the input of result element `at`, or -1 for the padding value -7.
  std::function<int64_t(const std::vector<int64_t> &at)> source;
};

std::string tensorOf(const std::vector<int64_t> &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}
int64_t count(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}
std::vector<int64_t> indicesOf(int64_t position, const std::vector<int64_t> &shape) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d])
    indices[d] = position % shape[d];
  return indices;
}
TEST(LoopKernelTest, Movements) {
  using Indices = std::vector<int64_t>;
  std::vector<Movement> movements = {
      {"nn.transpose %x perm = [1, 0]",
       {40, 50},
       {50, 40},
       [](const Indices &i) { return i[1] * 50 + i[0]; }},
      {"nn.transpose %x perm = [1, 0]",
       {64, 64},
       {64, 64},
       [](const Indices &i) { return i[1] * 64 + i[0]; }},
      {"nn.transpose %x perm = [0, 2, 1]",
       {3, 5, 7},
       {3, 7, 5},
       [](const Indices &i) { return (i[0] * 5 + i[2]) * 7 + i[1]; }},
      {"nn.transpose %x perm = [0, 2, 3, 1]",
       {2, 3, 6, 8},
       {2, 6, 8, 3},
       [](const Indices &i) { return ((i[0] * 3 + i[3]) * 6 + i[1]) * 8 + i[2]; }},
      {"nn.transpose %x perm = [2, 0, 1, 3]",
       {4, 5, 6, 20},
       {6, 4, 5, 20},
       [](const Indices &i) { return ((i[1] * 5 + i[2]) * 6 + i[0]) * 20 + i[3]; }},
      {"nn.slice %x starts = [1, 3] strides = [1, 1]",
       {5, 50},
       {3, 40},
       [](const Indices &i) { return (i[0] + 1) * 50 + i[1] + 3; }},
      {"nn.slice %x starts = [0, 1] strides = [2, 3]",
       {5, 50},
       {3, 16},
       [](const Indices &i) { return i[0] * 100 + i[1] * 3 + 1; }},
      {"nn.broadcast %x dims = [0, 2]", {4, 1}, {4, 3, 20}, [](const Indices &i) { return i[0]; }},
      {"nn.broadcast %x dims = [1]", {7}, {9, 7, 5}, [](const Indices &i) { return i[1]; }},
  };
  for (const Movement &m : movements) {
    std::string in = tensorOf(m.from, "f32"), out = tensorOf(m.to, "f32");
    std::string text = "func.func @k(%x: " + in + ") -> " + out + " {\n%y = " + m.op + " : " + in + " -> " +
                       out + "\nreturn %y : " + out + "\n}";
    std::vector<float> x(count(m.from));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i);
    auto y = valuesOf<float>(runEverywhere(text, {bufferOf(x)})[0]);
    for (int64_t i = 0; i < count(m.to); ++i)
      ASSERT_EQ(y[i], m.source(indicesOf(i, m.to))) << m.op << " at " << i;
  }
}

TEST(LoopKernelTest, ReverseAndIota) {
  std::string text = R"(func.func @k(%x: tensor<3x37xf32>) -> tensor<3x37xf32> {
    %r = nn.reverse %x axes = [0, 1] : tensor<3x37xf32>
    %i = nn.iota axis = 1 : tensor<3x37xf32>
    %y = arith.addf %r, %i : tensor<3x37xf32>
    return %y : tensor<3x37xf32> })";
  auto x = randomFloats(3 * 37, 7);
  auto y = valuesOf<float>(runEverywhere(text, {bufferOf(x)})[0]);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 37; ++j)
      ASSERT_EQ(y[i * 37 + j], x[(2 - i) * 37 + 36 - j] + float(j));
}

TEST(LoopKernelTest, PadsAndConcats) {
  for (auto [low, high, interior] : {std::array<int64_t, 3>{2, 3, 0}, {20, 0, 0}, {1, 1, 1}, {0, 2, 2}}) {
    int64_t rows = 3, n = 21, wide = low + high + n + (n - 1) * interior, tall = rows + 1;
    std::string in = tensorOf({rows, n}, "f32"), out = tensorOf({tall, wide}, "f32");
    std::string text = "func.func @k(%x: " + in + ", %v: tensor<f32>) -> " + out +
                       " {\n%y = nn.pad %x, %v low = [1, " + std::to_string(low) + "] high = [0, " +
                       std::to_string(high) + "] interior = [0, " + std::to_string(interior) + "] : " + in +
                       ", tensor<f32> -> " + out + "\nreturn %y : " + out + "\n}";
    auto x = randomFloats(rows * n, 8);
    auto y = valuesOf<float>(runEverywhere(text, {bufferOf(x), bufferOf(std::vector<float>{-7})})[0]);
    std::vector<float> want(tall * wide, -7);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j)
        want[(i + 1) * wide + low + j * (interior + 1)] = x[i * n + j];
    ASSERT_EQ(y, want) << text;
  }
  for (int64_t first : {1, 16, 23}) {
    std::string a = tensorOf({5, first}, "f32"), b = tensorOf({5, 30}, "f32"),
                out = tensorOf({5, first + 60}, "f32");
    std::string text = "func.func @k(%a: " + a + ", %b: " + b + ") -> " + out +
                       " {\n%e = arith.mulf %b, %b : " + b + "\n%y = nn.concat %a, %b, %e axis = 1 : " + a +
                       ", " + b + ", " + b + " -> " + out + "\nreturn %y : " + out + "\n}";
    auto x = randomFloats(5 * first, 9), z = randomFloats(150, 10);
    auto y = valuesOf<float>(runEverywhere(text, {bufferOf(x), bufferOf(z)})[0]);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < first + 60; ++j) {
        float w = j < first        ? x[i * first + j]
                  : j < first + 30 ? z[i * 30 + j - first]
                                   : z[i * 30 + j - first - 30] * z[i * 30 + j - first - 30];
        ASSERT_EQ(y[i * (first + 60) + j], w) << i << " " << j;
      }
  }
}

TEST(LoopKernelTest, ConcatenatesAScalar) {
  auto x = randomFloats(15, 13), s = randomFloats(1, 14);
  auto y =
      valuesOf<float>(runEverywhere(R"(func.func @k(%s: tensor<f32>, %x: tensor<3x5xf32>) -> tensor<16xf32> {
    %e = arith.mulf %s, %s : tensor<f32>
    %a = nn.reshape %e : tensor<f32> -> tensor<1xf32>
    %b = nn.reshape %x : tensor<3x5xf32> -> tensor<15xf32>
    %y = nn.concat %a, %b axis = 0 : tensor<1xf32>, tensor<15xf32> -> tensor<16xf32>
    return %y : tensor<16xf32>
  })",
                                    {bufferOf(s), bufferOf(x)})[0]);
  EXPECT_EQ(y[0], s[0] * s[0]);
  for (int64_t i = 0; i < 15; ++i)
    EXPECT_EQ(y[i + 1], x[i]) << i;
}

TEST(LoopKernelTest, Gathers) {
  auto table = randomFloats(10 * 33, 11);
  auto indices = randomIndices(6, 12, 10);
  auto y = valuesOf<float>(
      runEverywhere(R"(func.func @k(%x: tensor<10x33xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x33xf32> {
    %y = nn.gather %x, %i axis = 0 : tensor<10x33xf32>, tensor<2x3xi64> -> tensor<2x3x33xf32>
    return %y : tensor<2x3x33xf32> })",
                    {bufferOf(table), bufferOf(indices)})[0]);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 33; ++j)
      ASSERT_EQ(y[i * 33 + j], table[indices[i] * 33 + j]);
  auto columns = randomIndices(20, 13, 33);
  y = valuesOf<float>(
      runEverywhere(R"(func.func @k(%x: tensor<10x33xf32>, %i: tensor<20xi64>) -> tensor<10x20xf32> {
    %y = nn.gather %x, %i axis = 1 : tensor<10x33xf32>, tensor<20xi64> -> tensor<10x20xf32>
    return %y : tensor<10x20xf32> })",
                    {bufferOf(table), bufferOf(columns)})[0]);
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 20; ++j)
      ASSERT_EQ(y[i * 20 + j], table[i * 33 + columns[j]]);
  auto elements = randomIndices(10 * 7, 14, 33);
  y = valuesOf<float>(
      runEverywhere(R"(func.func @k(%x: tensor<10x33xf32>, %i: tensor<10x7xi64>) -> tensor<10x7xf32> {
    %y = nn.gather_elements %x, %i axis = 1 : tensor<10x33xf32>, tensor<10x7xi64> -> tensor<10x7xf32>
    return %y : tensor<10x7xf32> })",
                    {bufferOf(table), bufferOf(elements)})[0]);
  for (int i = 0; i < 70; ++i)
    ASSERT_EQ(y[i], table[i / 7 * 33 + elements[i]]);
}

TEST(LoopKernelTest, ReshapeIsIndexArithmetic) {
  // Merged, split and neither: 6 x 10 as 4 x 15 has no common dimensions.
  std::string text =
      R"(func.func @k(%x: tensor<6x10xf32>, %b: tensor<15xf32>, %c: tensor<3xf32>) -> (tensor<4x15xf32>) {
    %t = math.absf %x : tensor<6x10xf32>
    %r = nn.reshape %t : tensor<6x10xf32> -> tensor<4x15xf32>
    %w = nn.broadcast %b dims = [1] : tensor<15xf32> -> tensor<4x15xf32>
    %s = arith.addf %r, %w : tensor<4x15xf32>
    %v = nn.broadcast %c dims = [2] : tensor<3xf32> -> tensor<4x5x3xf32>
    %u = nn.reshape %v : tensor<4x5x3xf32> -> tensor<4x15xf32>
    %y = arith.mulf %s, %u : tensor<4x15xf32>
    return %y : tensor<4x15xf32> })";
  auto x = randomFloats(60, 15), b = randomFloats(15, 16), c = randomFloats(3, 17);
  auto y = valuesOf<float>(runEverywhere(text, {bufferOf(x), bufferOf(b), bufferOf(c)})[0]);
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(y[i], (std::abs(x[i]) + b[i % 15]) * c[i % 3]);
}

TEST(LoopKernelTest, ScattersAndScans) {
  for (int64_t inner : {1, 5, 16, 70}) {
    std::string columns = std::to_string(inner);
    auto indices = randomIndices(12, 18, 9);
    auto updates = randomFloats(12 * inner, 19);
    auto y = runEverywhere("func.func @k(%i: tensor<12xi64>, %u: tensor<12x" + columns +
                               "xf32>) -> tensor<9x" + columns +
                               "xf32> {\n"
                               "%y = nn.scatter_add %i, %u axis = 0 : tensor<12xi64>, tensor<12x" +
                               columns + "xf32> -> tensor<9x" + columns +
                               "xf32>\n"
                               "return %y : tensor<9x" +
                               columns + "xf32>\n}",
                           {bufferOf(indices), bufferOf(updates)});
    std::vector<double> want(9 * inner, 0.0);
    for (int64_t i = 0; i < 12; ++i)
      for (int64_t j = 0; j < inner; ++j)
        want[indices[i] * inner + j] += updates[i * inner + j];
    expectClose(y[0], want, 1e-6, "scatter_add " + columns);

    auto x = randomFloats(3 * 11 * inner, 20);
    std::string t = tensorOf({3, 11, inner}, "f32");
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true}) {
        y = runEverywhere("func.func @k(%x: " + t + ") -> " + t + " {\n%y = nn.cumsum %x axis = 1" +
                              (exclusive ? " exclusive" : "") + (reverse ? " reverse" : "") + " : " + t +
                              "\nreturn %y : " + t + "\n}",
                          {bufferOf(x)});
        std::vector<double> sums(x.size());
        for (int64_t o = 0; o < 3; ++o)
          for (int64_t j = 0; j < inner; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < 11; ++k) {
              int64_t at = (o * 11 + (reverse ? 10 - k : k)) * inner + j;
              double next = sum + x[at];
              sums[at] = exclusive ? sum : next;
              sum = next;
            }
          }
        expectClose(y[0], sums, 2e-6, "cumsum " + columns);
      }
    for (bool last : {false, true}) {
      auto z = x;
      for (float &v : z)
        v = std::round(v); // ties
      std::string r = tensorOf({3, inner}, "i64");
      auto found = valuesOf<int64_t>(
          runEverywhere("func.func @k(%x: " + t + ") -> " + r + " {\n%y = nn.arg_reduce max %x axis = 1" +
                            (last ? " last" : "") + " : " + t + " -> " + r + "\nreturn %y : " + r + "\n}",
                        {bufferOf(z)})[0]);
      for (int64_t o = 0; o < 3; ++o)
        for (int64_t j = 0; j < inner; ++j) {
          int64_t best = 0;
          for (int64_t k = 1; k < 11; ++k) {
            float a = z[(o * 11 + k) * inner + j], b = z[(o * 11 + best) * inner + j];
            if (a > b || (last && a == b))
              best = k;
          }
          ASSERT_EQ(found[o * inner + j], best) << inner << " " << last;
        }
    }
  }
}

/// Lists of the first few, merges of the rest, columns beside each other; equal elements and NaN.
TEST(LoopKernelTest, ArgSort) {
  for (auto [size, inner, taken] : {std::tuple<int64_t, int64_t, int64_t>{1, 3, 1},
                                    {2, 1, 2},
                                    {37, 1, 3},
                                    {37, 5, 37},
                                    {64, 2, 17},
                                    {1000, 1, 1000},
                                    {257, 1, 1}})
    for (bool descending : {false, true}) {
      auto x = randomFloats(2 * size * inner, 27);
      for (float &v : x)
        v = v > 1.9f ? NAN : std::round(4 * v); // ties
      std::string from = tensorOf({2, size, inner}, "f32"), to = tensorOf({2, taken, inner}, "i64");
      auto found = valuesOf<int64_t>(runEverywhere(
          "func.func @k(%x: " + from + ") -> " + to + " {\n%y = nn.arg_sort %x axis = 1" +
              (descending ? " descending" : "") + " : " + from + " -> " + to + "\nreturn %y : " + to + "\n}",
          {bufferOf(x)})[0]);
      for (int64_t o = 0; o < 2; ++o)
        for (int64_t j = 0; j < inner; ++j) {
          std::vector<std::tuple<bool, float, int64_t>> order; // NaN is the largest
          for (int64_t k = 0; k < size; ++k) {
            float v = x[(o * size + k) * inner + j];
            bool isNan = std::isnan(v);
            order.emplace_back(isNan != descending, isNan ? 0 : descending ? -v : v, k);
          }
          std::sort(order.begin(), order.end());
          for (int64_t k = 0; k < taken; ++k)
            ASSERT_EQ(found[(o * taken + k) * inner + j], std::get<2>(order[k]))
                << size << " " << inner << " " << taken << " " << descending;
        }
    }
}

/// Sums of `updates`, which has `columns` for each of `indices`, in single precision and in order.
static std::vector<float> scattered(const std::vector<int64_t> &indices, const std::vector<float> &updates,
                                    int64_t rows, int64_t columns) {
  std::vector<float> sums(rows * columns, 0.0f);
  for (size_t i = 0; i < indices.size(); ++i)
    for (int64_t j = 0; j < columns; ++j)
      sums[indices[i] * columns + j] += updates[i * columns + j];
  return sums;
}

// A large table in blocks of rows, the last of which is shorter, and a small one in blocks of columns. Some rows get
// many updates, most none.
TEST(LoopKernelTest, ScattersInBlocks) {
  struct {
    int64_t rows, columns, count;
  } cases[] = {{140001, 1, 100}, {16001, 9, 37}, {4103, 40, 531}, {2, 200, 2100}};
  for (auto [rows, columns, count] : cases) {
    auto indices = randomIndices(count, 31, rows);
    for (int64_t i = 0; i < count; i += 3)
      indices[i] = i % 2 ? 0 : rows - 1;
    auto updates = randomFloats(count * columns, 32);
    std::string i = tensorOf({count}, "i64"), u = tensorOf({count, columns}, "f32"),
                t = tensorOf({rows, columns}, "f32");
    auto y = runEverywhere("func.func @k(%i: " + i + ", %u: " + u + ") -> " + t +
                               " {\n%y = nn.scatter_add %i, %u axis = 0 : " + i + ", " + u + " -> " + t +
                               "\nreturn %y : " + t + "\n}",
                           {bufferOf(indices), bufferOf(updates)});
    EXPECT_EQ(valuesOf<float>(y[0]), scattered(indices, updates, rows, columns)) << rows << "x" << columns;
  }
}

// Sums that only elementwise operations read are made and used block by block.
TEST(LoopKernelTest, ScattersIntoAnUpdate) {
  struct {
    int64_t rows, columns, count;
  } cases[] = {{140001, 1, 100}, {16001, 9, 37}, {4103, 40, 531}};
  for (auto [rows, columns, count] : cases) {
    std::vector<int32_t> indices(count);
    for (int64_t i = 0; i < count; ++i)
      indices[i] = i % 3 ? (i * 7919) % rows : i % 2 ? 0 : rows - 1;
    auto updates = randomFloats(count * columns, 33), weights = randomFloats(rows * columns, 34);
    std::string i = tensorOf({count}, "i32"), u = tensorOf({count, columns}, "f32"),
                t = tensorOf({rows, columns}, "f32");
    auto y = runEverywhere("func.func @k(%w: " + t + ", %i: " + i + ", %u: " + u + ") -> (" + t + ", " + t +
                               ") {\n%s = nn.scatter_add %i, %u axis = 0 : " + i + ", " + u + " -> " + t +
                               "\n%h = arith.constant dense<0.5> : " + t + "\n%d = arith.mulf %s, %h : " + t +
                               "\n%y = arith.subf %w, %d : " + t + "\n%m = arith.maximumf %w, %s : " + t +
                               "\nreturn %y, %m : " + t + ", " + t + "\n}",
                           {bufferOf(weights), bufferOf(indices), bufferOf(updates)});
    auto sums = scattered({indices.begin(), indices.end()}, updates, rows, columns);
    std::vector<float> less(sums.size()), larger(sums.size());
    for (size_t e = 0; e < sums.size(); ++e) {
      less[e] = weights[e] - 0.5f * sums[e];
      larger[e] = std::max(weights[e], sums[e]);
    }
    EXPECT_EQ(valuesOf<float>(y[0]), less) << rows << "x" << columns;
    EXPECT_EQ(valuesOf<float>(y[1]), larger) << rows << "x" << columns;
  }
}

TEST(LoopKernelTest, ScatterElements) {
  auto x = randomFloats(5 * 7, 21), u = randomFloats(4 * 3, 22);
  auto indices = randomIndices(4 * 3, 23, 7);
  for (std::string mode : {"set", "add", "mul", "max", "min"}) {
    auto y = valuesOf<float>(runEverywhere(
        "func.func @k(%x: tensor<5x7xf32>, %i: tensor<4x3xi64>, %u: tensor<4x3xf32>) -> tensor<5x7xf32> {\n"
        "%y = nn.scatter_elements " +
            mode +
            " %x, %i, %u axis = 1 : tensor<5x7xf32>, tensor<4x3xi64>, tensor<4x3xf32> -> tensor<5x7xf32>\n"
            "return %y : tensor<5x7xf32>\n}",
        {bufferOf(x), bufferOf(indices), bufferOf(u)})[0]);
    auto want = x;
    for (int i = 0; i < 12; ++i) {
      float &to = want[i / 3 * 7 + indices[i]], v = u[i];
      to = mode == "set"   ? v
           : mode == "add" ? to + v
           : mode == "mul" ? to * v
           : mode == "max" ? std::max(to, v)
                           : std::min(to, v);
    }
    ASSERT_EQ(y, want) << mode;
  }
}

TEST(LoopKernelTest, NarrowTypesAndIntegers) {
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
TEST(LoopKernelTest, RandomBits) {
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
TEST(LoopKernelTest, IntegerArithmeticHasAResultForEveryOperand) {
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

TEST(LoopKernelTest, CastsFromFloatsSaturate) {
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

TEST(LoopKernelTest, FloatRemainderIsExact) {
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
TEST(LoopKernelTest, SharedPartsAreVisitedOnce) {
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

/// One pass over the rows computes a masked gradient and its column sums.
TEST(LoopKernelTest, ColumnSumsBesideTheirInput) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{300, 70}, {90, 1100}, {17, 5}}) {
    std::string t = tensorOf({rows, columns}, "f32"), v = tensorOf({columns}, "f32");
    std::string text = "func.func @k(%x: " + t + ", %g: " + t + ") -> (" + t + ", " + v +
                       ") {\n%z = arith.constant dense<0.0> : " + t + "\n%c = arith.cmpf ugt, %x, %z : " + t +
                       "\n%m = arith.select %c, %g, %z : " + tensorOf({rows, columns}, "i1") + ", " + t +
                       "\n%s = nn.reduce sum %m axes = [0] : " + t + " -> " + v + "\nreturn %m, %s : " + t +
                       ", " + v + "\n}";
    auto x = randomFloats(rows * columns, 25), g = randomFloats(rows * columns, 26);
    auto out = runEverywhere(text, {bufferOf(x), bufferOf(g)});
    std::vector<double> masked, sums(columns, 0.0);
    for (int64_t i = 0; i < rows * columns; ++i) {
      masked.push_back(x[i] > 0 ? g[i] : 0);
      sums[i % columns] += masked.back();
    }
    expectClose(out[0], masked, 0, "masked");
    // A block of 128 terms up to 2 is added one after another.
    expectClose(out[1], sums, 2e-5, "sums");
  }
}

} // namespace
