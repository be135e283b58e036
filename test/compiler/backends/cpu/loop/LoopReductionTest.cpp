// Reductions of loop kernels against plain loops in double precision, over odd shapes and all targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/loop/LoopFixture.h"

#include "compiler/kernels/SumOrder.h"

#include <cmath>

using namespace ortc::cpu;
using namespace ortc::kernels;
using namespace ortc::cpu::test;

namespace {

TEST(LoopReductionTest, ReductionsOverRowsAndColumns) {
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

TEST(LoopReductionTest, ReductionOverSeparatedDimensions) {
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

TEST(LoopReductionTest, NanPassesThroughMaxAndMin) {
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

TEST(LoopReductionTest, SoftmaxInOneKernel) {
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

/// One pass over the rows computes a masked gradient and its column sums.
TEST(LoopReductionTest, ColumnSumsBesideTheirInput) {
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

/// Sums of x[planes][groups][rows][columns] over planes and rows in the order that SumOrder.h promises: blocks of rows,
/// then planes.
std::vector<float> sumsInOrder(const std::array<int64_t, 4> &shape, const std::vector<float> &x) {
  auto [planes, groups, rows, columns] = shape;
  std::vector<float> sums(groups * columns, 0.0f);
  for (int64_t at = 0; at < groups * columns; ++at)
    for (int64_t plane = 0; plane < planes; ++plane) {
      float ofPlane = 0;
      for (int64_t start = 0; start < rows; start += kReductionBlock) {
        float block = 0;
        for (int64_t row = start; row < std::min(rows, start + kReductionBlock); ++row)
          block += x[((plane * groups + at / columns) * rows + row) * columns + at % columns];
        ofPlane += block;
      }
      sums[at] += ofPlane;
    }
  return sums;
}

/// Moments of columns: the first of two passes reads rows as a stream. Bits depend on neither that nor on how columns
/// are cut for workers.
TEST(LoopReductionTest, MomentsOfStreamedRowsInOrder) {
  using Shape = std::array<int64_t, 4>;
  for (Shape shape : {Shape{3, 2, 40, 176}, {5, 1, 14, 310}, {2, 3, 100, 70}}) {
    auto [planes, groups, rows, columns] = shape;
    bool isOneRun = groups == 1; // planes and rows are one dimension then
    std::string t = tensorOf({planes, groups, rows, columns}, "f32"), v = tensorOf({groups, columns}, "f32");
    std::string text = "func.func @k(%x: " + t + ") -> (" + v + ", " + v +
                       ") {\n%s = nn.reduce sum %x axes = [0, 2] : " + t + " -> " + v +
                       "\n%f = arith.constant dense<0.0078125> : " + v + "\n%m = arith.mulf %s, %f : " + v +
                       "\n%b = nn.broadcast %m dims = [1, 3] : " + v + " -> " + t +
                       "\n%c = arith.subf %x, %b : " + t + "\n%q = arith.mulf %c, %c : " + t +
                       "\n%r = nn.reduce sum %q axes = [0, 2] : " + t + " -> " + v +
                       "\nreturn %m, %r : " + v + ", " + v + "\n}";
    auto x = randomFloats(planes * groups * rows * columns, 31);
    Shape merged = isOneRun ? Shape{1, 1, planes * rows, columns} : shape;
    auto means = sumsInOrder(merged, x);
    for (float &mean : means)
      mean *= 0.0078125f;
    std::vector<float> squares(x);
    for (size_t i = 0; i < x.size(); ++i) {
      squares[i] -= means[int64_t(i) / (rows * columns) % groups * columns + int64_t(i) % columns];
      squares[i] *= squares[i];
    }
    squares = sumsInOrder(merged, squares);
    for (llvm::StringRef name : targetNames())
      for (int64_t workers : {1, 2, 8, 256}) {
        Target target = *findTarget(name);
        target.workers = workers;
        if (!canRunHere(target))
          continue;
        auto out = CompiledLoop(text, target).run({bufferOf(x)});
        EXPECT_EQ(valuesOf<float>(out[0]), means) << name.str() << ", " << workers << " workers";
        EXPECT_EQ(valuesOf<float>(out[1]), squares) << name.str() << ", " << workers << " workers";
      }
  }
}

} // namespace
