// What kernels are said to need before there is code, and that code keeps to it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/backends/cpu/program/KernelSurvey.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::cpu;

namespace {

/// Two products, one of which is worth a pool, and a check of indices.
constexpr const char *kModule = R"(
func.func private @large(%a: tensor<512x300xf32>, %b: tensor<300x512xf32>) -> tensor<512x512xf32>
    attributes {plan.kind = #plan<kernel_kind contraction>} {
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<512x300xf32>, tensor<300x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}
func.func private @small(%a: tensor<48x64xf32>, %b: tensor<64x64xf32>) -> tensor<48x64xf32>
    attributes {plan.kind = #plan<kernel_kind contraction>} {
  %0 = nn.dot %a, %b batch = [] x [] contract = [1] x [1] : tensor<48x64xf32>, tensor<64x64xf32> -> tensor<48x64xf32>
  return %0 : tensor<48x64xf32>
}
func.func private @check(%i: tensor<8xi64>) -> tensor<8xi64> attributes {plan.kind = #plan<kernel_kind check>} {
  %0 = nn.check_index %i "label" in[0, 10] : tensor<8xi64>
  return %0 : tensor<8xi64>
}
)";

class KernelSurveyTest : public testing::Test {
protected:
  KernelSurveyTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, nn::NnDialect,
                        plan::PlanDialect>();
    context.disableMultithreading();
    module = parseSourceString<ModuleOp>(kModule, &context);
  }

  static cpu::Target targetOf(StringRef name, int64_t workers) {
    cpu::Target target = *cpu::findTarget(name);
    target.workers = workers;
    return target;
  }
  void annotate(const cpu::Target &target) {
    cpu::MadeKernels made;
    Status status = cpu::annotateKernels(*module, target, {}, /*compiles=*/false, made);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
  }
  int64_t scratchOf(StringRef kernel) {
    auto bytes = module->lookupSymbol(kernel)->getAttrOfType<IntegerAttr>(plan::kScratch);
    return bytes ? bytes.getInt() : -1;
  }
  void forget() {
    for (const char *kernel : {"large", "small"})
      module->lookupSymbol(kernel)->removeAttr(plan::kScratch);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(KernelSurveyTest, ParallelKernelsHaveScratchForEveryWorker) {
  annotate(targetOf("x86-64-v3", 1));
  int64_t large = scratchOf("large"), small = scratchOf("small");
  ASSERT_GT(large, 0);
  ASSERT_GT(small, 0);
  forget();
  annotate(targetOf("x86-64-v3", 3));
  EXPECT_EQ(scratchOf("large"), 3 * large);
  EXPECT_EQ(scratchOf("small"), small); // the thread that calls runs it alone
}

TEST_F(KernelSurveyTest, TheTargetThatNeedsMostCounts) {
  cpu::Target narrow = targetOf("x86-64", 2), wide = targetOf("x86-64-v4", 2);
  annotate(narrow);
  int64_t first = scratchOf("large");
  forget();
  annotate(wide);
  int64_t second = scratchOf("large");
  EXPECT_NE(first, second) << "the test needs kernels that differ";
  annotate(narrow);
  EXPECT_EQ(scratchOf("large"), std::max(first, second));
  forget();
  annotate(narrow);
  annotate(wide);
  EXPECT_EQ(scratchOf("large"), std::max(first, second));
}

TEST_F(KernelSurveyTest, WhatTheSurveyCompiledIsTheCode) {
  auto makeCode = [&](bool compiles) {
    cpu::MadeKernels made;
    Status status = cpu::annotateKernels(*module, targetOf("x86-64-v3", 2), {}, compiles, made);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
    EXPECT_EQ(made["large"].object.has_value(), compiles);
    EXPECT_FALSE(made["check"].object) << "its code has a number that only the placed program gives";
    kernels::ProgramKernels kernels;
    kernels.names = {"small", "check", "large"};
    kernels.checkNames = {"other", "label"};
    auto code = cpu::compileKernels(*module, kernels, targetOf("x86-64-v3", 2), {}, made);
    EXPECT_TRUE(bool(code)) << code.getStatus().getMessage();
    return code ? code->blob.bytes : artifact::Bytes();
  };
  EXPECT_EQ(makeCode(true), makeCode(false));
}

TEST_F(KernelSurveyTest, CodeThatNeedsMoreThanWasPlannedIsRefused) {
  auto program = parseSourceString<ModuleOp>(std::string(kModule) + R"(
    plan.program @predict_0_program "predict" binding 0 bytes 0 peak 0 source_peak 0 order_bound 0 {
      %a = plan.buffer external 0 "a" "input" : memref<48x64xf32>
      %b = plan.buffer external 1 "b" "input" : memref<64x64xf32>
      %y = plan.buffer external 2 "y" "output" : memref<48x64xf32>
      plan.step @small(%a, %b) -> (%y) : memref<48x64xf32>, memref<64x64xf32> -> memref<48x64xf32>
    }
  )",
                                             &context);
  ASSERT_TRUE(program);
  cpu::MadeKernels made;
  auto code =
      cpu::compileKernels(*program, kernels::findKernels(*program), targetOf("x86-64-v3", 2), {}, made);
  ASSERT_FALSE(code);
  const std::string &error = code.getStatus().getMessage();
  EXPECT_TRUE(error.starts_with("kernel small needs ") &&
              error.ends_with(" bytes of scratch, and the plan has 0; please report this with the model"))
      << error;
}

} // namespace
