// Loop kernels that read or write where indices say, scans and sorting, against plain loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/loop/LoopFixture.h"

#include <algorithm>
#include <cmath>

using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

TEST(LoopIndexTest, Gathers) {
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

/// Elements of small tables, 16 or 64 at a time, which a second pass over the row reads again.
TEST(LoopIndexTest, LooksUp) {
  constexpr int64_t kRows = 3;
  for (int64_t size : {16, 32, 128, 256})
    for (int64_t columns : {128, 80}) {
      SCOPED_TRACE(std::to_string(size) + " numbers, rows of " + std::to_string(columns));
      std::string table = tensorOf({size}, "f32"), indices = tensorOf({kRows, columns}, "i32"),
                  numbers = tensorOf({kRows, columns}, "f32"), most = tensorOf({kRows}, "f32");
      auto values = randomFloats(size, 20);
      std::vector<int32_t> places;
      for (int64_t index : randomIndices(kRows * columns, 21, size))
        places.push_back(static_cast<int32_t>(index));
      std::string text = "func.func @k(%t: " + table + ", %i: " + indices + ") -> (" + numbers + ", " + most +
                         ") {\n%v = nn.gather %t, %i axis = 0 : " + table + ", " + indices + " -> " +
                         numbers + "\n%m = nn.reduce max %v axes = [1] : " + numbers + " -> " + most +
                         "\n%b = nn.broadcast %m dims = [0] : " + most + " -> " + numbers +
                         "\n%d = arith.subf %v, %b : " + numbers + "\nreturn %d, %m : " + numbers + ", " +
                         most + "\n}";
      auto y = runEverywhere(text, {bufferOf(values), bufferOf(places)});
      if (auto native = findTarget("native")) // no level has lookups by bytes
        EXPECT_EQ(CompiledLoop(text, *native).run({bufferOf(values), bufferOf(places)}), y);
      auto differences = valuesOf<float>(y[0]), largest = valuesOf<float>(y[1]);
      for (int64_t row = 0; row < kRows; ++row) {
        float want = values[places[row * columns]];
        for (int64_t i = row * columns; i < (row + 1) * columns; ++i)
          want = std::max(want, values[places[i]]);
        ASSERT_EQ(largest[row], want);
        for (int64_t i = row * columns; i < (row + 1) * columns; ++i)
          ASSERT_EQ(differences[i], values[places[i]] - want);
      }
    }
}

TEST(LoopIndexTest, ScattersAndScans) {
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
TEST(LoopIndexTest, ArgSort) {
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
TEST(LoopIndexTest, ScattersInBlocks) {
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
TEST(LoopIndexTest, ScattersIntoAnUpdate) {
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

/// Rows of a table that is elsewhere, by any number of threads; indices behind the last row write nothing.
TEST(LoopIndexTest, Scatter) {
  for (auto [rows, columns, count] : {std::array{7, 5, 3}, std::array{700, 100, 400}, std::array{3, 1, 5}}) {
    auto x = randomFloats(rows * columns, 31), u = randomFloats(count * columns, 32), want = x;
    std::vector<int64_t> indices(count);
    for (int i = 0; i < count; ++i) {
      indices[i] = i % 3 == 2 || i >= rows ? rows + i : rows - 1 - i; // each row once
      for (int c = 0; c < columns && indices[i] < rows; ++c)
        want[indices[i] * columns + c] = u[i * columns + c];
    }
    std::string table = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>",
                some = "tensor<" + std::to_string(count) + "x" + std::to_string(columns) + "xf32>",
                numbers = "tensor<" + std::to_string(count) + "xi64>";
    auto y = runEverywhere("func.func @k(%x: " + table + ", %i: " + numbers + ", %u: " + some + ") -> " +
                               table + " {\n%y = nn.scatter %x, %i, %u : " + table + ", " + numbers + ", " +
                               some + "\nreturn %y : " + table + "\n}",
                           {bufferOf(x), bufferOf(indices), bufferOf(u)});
    EXPECT_EQ(valuesOf<float>(y[0]), want) << rows << "x" << columns;
  }
}

TEST(LoopIndexTest, ScatterElements) {
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

} // namespace
