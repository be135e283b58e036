// Generators whose positions depend on data, with wavefronts of 64 and of 32 lanes, against the evaluator: gathers,
// scatters, sorts, scans, pools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/FibreKernel.h"

using namespace ortc;
using namespace ortc::fibres;
using plan::KernelKind;

namespace {

const std::string kPool =
    " window = [3, 3] strides = [2, 2] padding = [1, 1] to [1, 1] overhang = [0, 0] dilations = [1, 1]";

/// Indices below `rows` from random numbers in [-1, 1].
std::string indices(const std::string &count, int64_t rows) {
  std::string t = "tensor<" + count + "xf32>", h = std::to_string(double(rows) / 2 - 0.01);
  return "%h = arith.constant dense<" + h + "> : " + t + "\n%m = arith.mulf %r, %h : " + t +
         "\n%a = arith.addf %m, %h : " + t + "\n%i = arith.fptosi %a : " + t + " to tensor<" + count +
         "xi64>\n";
}

TEST(FibreIndexedTest, Gathers) {
  check("func.func @inputs(%x: tensor<33x20xf32>, %r: tensor<50xf32>) -> (tensor<33x20xf32>, tensor<50xi64>) "
        "{\n" +
            indices("50", 33) + R"(return %x, %i : tensor<33x20xf32>, tensor<50xi64>
  }
  func.func @k(%x: tensor<33x20xf32>, %i: tensor<50xi64>) -> tensor<50x20xf32> {
    %y = nn.gather %x, %i axis = 0 : tensor<33x20xf32>, tensor<50xi64> -> tensor<50x20xf32>
    return %y : tensor<50x20xf32>
  })",
        KernelKind::loop, 1e-7);
}

TEST(FibreIndexedTest, SumsOfRowsByIndex) {
  for (auto [rows, columns, count] :
       {std::tuple<int64_t, int64_t, int64_t>{9, 5, 12}, {400, 3, 100}, {7, 33, 700}, {700, 200, 90}}) {
    std::string n = std::to_string(count), i = "tensor<" + n + "xi64>",
                u = "tensor<" + n + "x" + std::to_string(columns) + "xf32>",
                t = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
    // Rounding errors of sums of all updates at most.
    check("func.func @inputs(%r: tensor<" + n + "xf32>, %u: " + u + ") -> (" + i + ", " + u + ") {\n" +
              indices(n, rows) + "return %i, %u : " + i + ", " + u + "\n}\nfunc.func @k(%i: " + i +
              ", %u: " + u + ") -> " + t + " {\n%y = nn.scatter_add %i, %u axis = 0 : " + i + ", " + u +
              " -> " + t + "\nreturn %y : " + t + "\n}",
          KernelKind::scatter, 1.2e-7 * (4 + double(count)));
  }
}

/// A step of a large table, in place, by the sums of its rows: a thread has neighbours.
TEST(FibreIndexedTest, TablesWithTheSumsOfTheirRows) {
  check("func.func @inputs(%r: tensor<90xf32>, %u: tensor<90x200xf32>, %w: tensor<700x200xf32>) -> "
        "(tensor<90xi64>, tensor<90x200xf32>, tensor<700x200xf32>) {\n" +
            indices("90", 700) +
            R"(return %i, %u, %w : tensor<90xi64>, tensor<90x200xf32>, tensor<700x200xf32>
  }
  func.func @k(%i: tensor<90xi64>, %u: tensor<90x200xf32>, %w: tensor<700x200xf32>) -> tensor<700x200xf32>
      attributes {plan.in_place = array<i64: 2, 0>} {
    %s = nn.scatter_add %i, %u axis = 0 : tensor<90xi64>, tensor<90x200xf32> -> tensor<700x200xf32>
    %d = arith.mulf %s, %w : tensor<700x200xf32>
    %y = arith.subf %w, %d : tensor<700x200xf32>
    return %y : tensor<700x200xf32>
  })",
        KernelKind::scatter, 1e-5);
}

TEST(FibreIndexedTest, RunningSums) {
  check(R"(func.func @k(%x: tensor<3x11x5xf32>) -> tensor<3x11x5xf32> {
    %y = nn.cumsum %x axis = 1 : tensor<3x11x5xf32>
    return %y : tensor<3x11x5xf32>
  })",
        KernelKind::scan, 2e-6);
}

TEST(FibreIndexedTest, LargestOfRows) {
  check(R"(func.func @k(%x: tensor<40x21xf32>) -> tensor<40xi64> {
    %y = nn.arg_reduce max %x axis = 1 : tensor<40x21xf32> -> tensor<40xi64>
    return %y : tensor<40xi64>
  })",
        KernelKind::scan, 0);
}

TEST(FibreIndexedTest, SortedRows) {
  check(R"(func.func @k(%x: tensor<9x40xf32>) -> tensor<9x12xi64> {
    %y = nn.arg_sort %x axis = 1 descending : tensor<9x40xf32> -> tensor<9x12xi64>
    return %y : tensor<9x12xi64>
  })",
        KernelKind::scan, 0);
}

TEST(FibreIndexedTest, PoolsAndTheirGradient) {
  check("func.func @k(%x: tensor<2x9x11x7xf32>) -> (tensor<2x5x6x7xf32>, tensor<2x5x6x7xi8>) {\n%y, %i = "
        "nn.max_pool "
        "%x" +
            kPool +
            " : tensor<2x9x11x7xf32> -> tensor<2x5x6x7xf32>, tensor<2x5x6x7xi8>\nreturn %y, %i : "
            "tensor<2x5x6x7xf32>, tensor<2x5x6x7xi8>\n}",
        KernelKind::pool, 1e-7);
  check("func.func @k(%dy: tensor<2x5x6x7xf32>) -> tensor<2x9x11x7xf32> {\n%dx = nn.avg_pool_grad %dy" +
            kPool + " : tensor<2x5x6x7xf32> -> tensor<2x9x11x7xf32>\nreturn %dx : tensor<2x9x11x7xf32>\n}",
        KernelKind::pool, 2e-6);
}

/// A thread has neighbouring channels.
TEST(FibreIndexedTest, PoolsOfManyChannels) {
  std::string x = "tensor<1x60x60x40xf32>", y = "tensor<1x30x30x40xf32>", i = "tensor<1x30x30x40xi8>";
  check("func.func @k(%x: tensor<1x120x120x40xf32>) -> (tensor<1x60x60x40xf32>, tensor<1x60x60x40xi8>) "
        "{\n%y, %i = "
        "nn.max_pool %x" +
            kPool +
            " : tensor<1x120x120x40xf32> -> tensor<1x60x60x40xf32>, tensor<1x60x60x40xi8>\nreturn %y, %i : "
            "tensor<1x60x60x40xf32>, tensor<1x60x60x40xi8>\n}",
        KernelKind::pool, 0);
  check("func.func @inputs(%dy: " + y + ", %r: tensor<1x30x30x40xf32>) -> (" + y + ", " + i + ") {\n" +
            indices("1x30x30x40", 9) + "%t = arith.trunci %i : tensor<1x30x30x40xi64> to " + i +
            "\nreturn %dy, %t : " + y + ", " + i + "\n}\nfunc.func @k(%dy: " + y + ", %i: " + i + ") -> " +
            x + " {\n%dx = nn.max_pool_grad %dy, %i" + kPool + " : " + y + ", " + i + " -> " + x +
            "\nreturn %dx : " + x + "\n}",
        KernelKind::pool, 1e-6);
}

} // namespace
