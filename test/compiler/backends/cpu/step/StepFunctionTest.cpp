// How steps are cut into functions: none grows with the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/step/StepFunction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc;

namespace {

class StepFunctionTest : public testing::Test {
protected:
  StepFunctionTest() {
    context.loadDialect<func::FuncDialect, LLVM::LLVMDialect, plan::PlanDialect>();
    context.disableMultithreading();
  }

  /// A program with `body`, between a kernel and a buffer for it; the functions of its step with their calls.
  std::vector<size_t> countCalls(const std::string &body) {
    std::string text = R"(
func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32>
plan.program @p "predict" binding 0 bytes 64 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<16xf32>
)" + body + "}\n";
    OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(source);
    llvm::StringMap<cpu::StepKernel> kernels;
    kernels["k"].symbol = "k_entry";
    module = ModuleOp::create(UnknownLoc::get(&context));
    cpu::createStepFunction(*module, *source->getOps<plan::ProgramOp>().begin(), "step", kernels,
                            cpu::findTarget("x86-64")->isa, Numerics::Fast);
    EXPECT_TRUE(succeeded(verify(*module)));
    std::vector<size_t> calls;
    for (auto function : module->getOps<LLVM::LLVMFuncOp>())
      if (function.getSymName().starts_with("step")) {
        calls.push_back(0);
        function.walk([&](LLVM::CallOp) { ++calls.back(); });
      }
    return calls;
  }

  static std::string repeat(size_t count) {
    std::string body;
    for (size_t i = 0; i < count; ++i)
      body += "plan.step @k(%0) -> (%0) : memref<16xf32> -> memref<16xf32>\n";
    return body;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(StepFunctionTest, ShortStepsAreOneFunction) {
  EXPECT_EQ(countCalls(repeat(1000)), std::vector<size_t>{1000});
}

TEST_F(StepFunctionTest, LongStepsAreCutInFunctionsOfTheSameSize) {
  std::vector<size_t> once = countCalls(repeat(5000)), twice = countCalls(repeat(10000));
  EXPECT_EQ(once, (std::vector<size_t>{5, 1000, 1000, 1000, 1000, 1000}));
  EXPECT_EQ(twice.size(), 11u);
  EXPECT_EQ(twice.front(), 10u);
}

TEST_F(StepFunctionTest, PartsOfLoopsTakeTheirIterations) {
  std::string inner = "plan.loop 3 {\n" + repeat(2500) + "}\n";
  std::vector<size_t> calls = countCalls("plan.loop 4 {\n" + inner + repeat(10) + "}\n");
  EXPECT_EQ(calls, (std::vector<size_t>{13, 1000, 1000, 500}));
  for (auto function : module->getOps<LLVM::LLVMFuncOp>())
    if (function.getSymName().starts_with("step_part"))
      EXPECT_EQ(function.getNumArguments(), 3u) << function.getSymName().str();
}

/// The last iteration is clamped on both sides.
TEST_F(StepFunctionTest, LimitsOfLoopsAreReadByTheStep) {
  auto countSelects = [&] {
    size_t count = 0;
    module->walk([&](LLVM::SelectOp) { ++count; });
    return count;
  };
  EXPECT_EQ(
      countCalls("%1 = plan.buffer transient 0 \"n\" : memref<i32>\nplan.loop 4 limit %1 : memref<i32> {\n" +
                 repeat(3) + "}\n"),
      std::vector<size_t>{3});
  EXPECT_EQ(countSelects(), 2u);
  countCalls("plan.loop 4 {\n" + repeat(3) + "}\n");
  EXPECT_EQ(countSelects(), 0u);
}

TEST_F(StepFunctionTest, ManyLongLoopsAreCutAsWell) {
  std::string body;
  for (int i = 0; i < 40; ++i)
    body += "plan.loop 2 {\n" + repeat(300) + "}\n";
  for (size_t calls : countCalls(body))
    EXPECT_LE(calls, 1000u);
}

} // namespace
