// Loop kernels that only move elements, against reference index functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/loop/LoopFixture.h"

#include <cmath>

using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

/// Every movement with a reference index function, on values that are their own positions.
struct Movement {
  std::string op;
  std::vector<int64_t> from, to;
  /// Position in the input of result element `at`, or -1 for the padding value -7.
  std::function<int64_t(const std::vector<int64_t> &at)> source;
};

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

TEST(LoopMovementTest, Movements) {
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

TEST(LoopMovementTest, ReverseAndIota) {
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

TEST(LoopMovementTest, PadsAndConcats) {
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

TEST(LoopMovementTest, ConcatenatesAScalar) {
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

TEST(LoopMovementTest, ReshapeIsIndexArithmetic) {
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

} // namespace
