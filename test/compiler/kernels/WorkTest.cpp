// How much kernels do, against arithmetic on their shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/kernels/ProgramKernels.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc;
using kernels::KernelWork;

namespace {

class WorkTest : public testing::Test {
protected:
  WorkTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, nn::NnDialect,
                        plan::PlanDialect>();
  }

  /// Of a kernel of this kind: `signature` is "(ARGUMENTS) -> RESULTS".
  KernelWork workOf(const std::string &kind, const std::string &signature, const std::string &body) {
    auto module = parseSourceString<ModuleOp>("func.func private @k" + signature +
                                                  " attributes {plan.kind = #plan<kernel_kind " + kind +
                                                  ">} {\n" + body + "\n}",
                                              &context);
    if (!module)
      return {-1, -1, -1, -1};
    return kernels::workOf(*module->getOps<func::FuncOp>().begin());
  }
  static void expect(const KernelWork &work, int64_t flops, int64_t cost, int64_t bytesRead,
                     int64_t bytesWritten) {
    EXPECT_EQ(work.flops, flops);
    EXPECT_EQ(work.cost, cost);
    EXPECT_EQ(work.bytesRead, bytesRead);
    EXPECT_EQ(work.bytesWritten, bytesWritten);
  }

  MLIRContext context;
};

TEST_F(WorkTest, AContractionMultipliesAndAddsAndTheEpilogueIsBesideIt) {
  const std::string dot = "%0 = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<48x64xf32>, "
                          "tensor<64x32xf32> -> tensor<48x32xf32>\n";
  const int64_t product = 2 * 48 * 64 * 32, a = 48 * 64 * 4, b = 64 * 32 * 4, c = 48 * 32 * 4;
  expect(workOf("contraction", "(%a: tensor<48x64xf32>, %b: tensor<64x32xf32>) -> tensor<48x32xf32>",
                dot + "return %0 : tensor<48x32xf32>"),
         product, 0, a + b, c);
  expect(workOf("contraction",
                "(%a: tensor<48x64xf32>, %b: tensor<64x32xf32>, %c: tensor<48x32xf32>) -> tensor<48x32xf32>",
                dot + "%1 = arith.addf %0, %c : tensor<48x32xf32>\nreturn %1 : tensor<48x32xf32>"),
         product + 48 * 32, 0, a + b + c, c);
}

TEST_F(WorkTest, AConvolutionSumsItsWindowOverTheChannels) {
  expect(workOf("conv", "(%x: tensor<2x10x3xf32>, %w: tensor<4x3x8xf32>) -> tensor<2x7x8xf32>",
                "%0 = nn.conv %x, %w strides = [1] padding = [0] to [0] dilations = [1] groups = 1 : "
                "tensor<2x10x3xf32>, tensor<4x3x8xf32> -> tensor<2x7x8xf32>\nreturn %0 : tensor<2x7x8xf32>"),
         2 * (2 * 7 * 8) * (4 * 3), 0, (2 * 10 * 3 + 4 * 3 * 8) * 4, 2 * 7 * 8 * 4);
}

TEST_F(WorkTest, PoolsTakeAStepForEachTapAndOnlyAveragesAdd) {
  const std::string window = "window = [2] strides = [2] padding = [0] to [0] overhang = [0] dilations = [1] "
                             ": tensor<3x8x5xf32> -> ";
  const int64_t results = 3 * 4 * 5, taps = 2, input = 3 * 8 * 5;
  expect(workOf("pool", "(%x: tensor<3x8x5xf32>) -> tensor<3x4x5xf32>",
                "%0 = nn.avg_pool %x " + window + "tensor<3x4x5xf32>\nreturn %0 : tensor<3x4x5xf32>"),
         results * taps, results * taps, input * 4, results * 4);
  expect(
      workOf("pool", "(%x: tensor<3x8x5xf32>) -> (tensor<3x4x5xf32>, tensor<3x4x5xi8>)",
             "%0, %1 = nn.max_pool %x " + window +
                 "tensor<3x4x5xf32>, tensor<3x4x5xi8>\nreturn %0, %1 : tensor<3x4x5xf32>, tensor<3x4x5xi8>"),
      0, results * taps, input * 4, results * 5);
}

TEST_F(WorkTest, ScansTakeAStepForEachElement) {
  const std::string signature = "(%x: tensor<6x7x5xf32>) -> tensor<6x7x5xf32>";
  expect(workOf("scan", signature,
                "%0 = nn.cumsum %x axis = 1 : tensor<6x7x5xf32>\nreturn %0 : tensor<6x7x5xf32>"),
         6 * 7 * 5, 6 * 7 * 5, 6 * 7 * 5 * 4, 6 * 7 * 5 * 4);
  expect(workOf("scan", "(%x: tensor<6x7x5xf32>) -> tensor<6x5xi64>",
                "%0 = nn.arg_reduce max %x axis = 1 : tensor<6x7x5xf32> -> tensor<6x5xi64>\nreturn %0 : "
                "tensor<6x5xi64>"),
         0, 6 * 7 * 5, 6 * 7 * 5 * 4, 6 * 5 * 8);
}

TEST_F(WorkTest, SortingAWholeColumnTakesMorePassesThanAFewOfIt) {
  auto sort = [&](int64_t taken) {
    std::string type = "tensor<" + std::to_string(taken) + "x3xi64>";
    return workOf("scan", "(%x: tensor<1024x3xf32>) -> " + type,
                  "%0 = nn.arg_sort %x axis = 0 : tensor<1024x3xf32> -> " + type + "\nreturn %0 : " + type);
  };
  expect(sort(1024), 0, 3 * 4 * 1024 * (10 + 1), 1024 * 3 * 4, 1024 * 3 * 8);
  expect(sort(4), 0, 3 * 4 * (1024 + 4 * 4), 1024 * 3 * 4, 4 * 3 * 8);
}

TEST_F(WorkTest, AScatterReadsItsUpdatesOnceAndAddsAtLeastThose) {
  KernelWork work = workOf("scatter", "(%i: tensor<100xi64>, %u: tensor<100x8xf32>) -> tensor<50x8xf32>",
                           "%0 = nn.scatter_add %i, %u axis = 0 : tensor<100xi64>, tensor<100x8xf32> -> "
                           "tensor<50x8xf32>\nreturn %0 : tensor<50x8xf32>");
  EXPECT_GE(work.flops, 100 * 8);
  EXPECT_EQ(work.bytesRead, 100 * 8 + 100 * 8 * 4);
  EXPECT_EQ(work.bytesWritten, 50 * 8 * 4);
  expect(workOf("scatter",
                "(%x: tensor<9x3xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>) -> tensor<9x3xf32>",
                "%0 = nn.scatter_elements set %x, %i, %u axis = 0 : tensor<9x3xf32>, tensor<2x3xi64>, "
                "tensor<2x3xf32> -> tensor<9x3xf32>\nreturn %0 : tensor<9x3xf32>"),
         0, 9 * 3 + 2 * 3, 9 * 3 * 4 + 2 * 3 * 12, 9 * 3 * 4);
}

TEST_F(WorkTest, LoopsCountArithmeticAndFunctionsButNoComparisons) {
  KernelWork work = workOf("loop", "(%x: tensor<10x20xf32>, %y: tensor<10x20xf32>) -> tensor<10x20xf32>",
                           "%0 = arith.mulf %x, %y : tensor<10x20xf32>\n"
                           "%1 = math.exp %0 : tensor<10x20xf32>\n"
                           "%2 = arith.cmpf ogt, %1, %y : tensor<10x20xf32>\n"
                           "%3 = arith.select %2, %1, %x : tensor<10x20xi1>, tensor<10x20xf32>\n"
                           "return %3 : tensor<10x20xf32>");
  EXPECT_EQ(work.flops, 2 * 10 * 20);
  EXPECT_GT(work.cost, work.flops) << "exp is many operations";
  EXPECT_EQ(work.bytesRead, 2 * 10 * 20 * 4);
}

TEST_F(WorkTest, ChecksAndEmptyResultsOnlyMoveBytes) {
  expect(workOf("check", "(%i: tensor<8xi64>) -> tensor<8xi64>",
                "%0 = nn.check_index %i \"label\" in[0, 10] : tensor<8xi64>\nreturn %0 : tensor<8xi64>"),
         0, 0, 64, 64);
  expect(workOf("loop", "(%x: tensor<0x4xf32>) -> tensor<0x4xf32>",
                "%0 = arith.addf %x, %x : tensor<0x4xf32>\nreturn %0 : tensor<0x4xf32>"),
         0, 0, 0, 0);
}

} // namespace
