// Which numbers of 64 bits become numbers of 32: counters and offsets, and no data.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/NarrowIndices.h"

#include <gtest/gtest.h>

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace {

/// A loop over `count` floats at `p`, 3 elements apart, and over as many i64 at `q`; %sum and %scaled are data.
std::string makeLoop(const std::string &count) {
  return R"(define i64 @f(ptr %p, ptr %q, i64 %seed) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %sum = phi i64 [ %seed, %entry ], [ %added, %body ]
  %more = icmp slt i64 %i, )" +
         count + R"(
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %i, 3
  %to = getelementptr float, ptr %p, i64 %at
  store float 0.0, ptr %to
  %from = getelementptr i64, ptr %q, i64 %i
  %data = load i64, ptr %from
  %scaled = mul i64 %data, 3
  %added = add i64 %sum, %scaled
  %row = sdiv i64 %i, 7
  %rowed = getelementptr float, ptr %p, i64 %row
  store float 1.0, ptr %rowed
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 %sum
})";
}

class NarrowIndicesTest : public testing::Test {
protected:
  void narrow(const std::string &text) {
    SMDiagnostic error;
    module = parseAssemblyString(text, error, context);
    ASSERT_TRUE(module) << error.getMessage().str();
    ortc::cpu::narrowIndices(*module);
    ASSERT_FALSE(verifyModule(*module, &errs()));
  }

  /// Operations of this kind whose first operand, or result, has so many bits.
  int count(unsigned opcode, unsigned bits) const {
    int found = 0;
    for (const BasicBlock &block : *module->getFunction("f"))
      for (const Instruction &op : block)
        found += op.getOpcode() == opcode && op.getOperand(0)->getType()->isIntegerTy(bits);
    return found;
  }

  LLVMContext context;
  std::unique_ptr<Module> module;
};

TEST_F(NarrowIndicesTest, CountersAndOffsetsAndNoData) {
  narrow(makeLoop("1000"));
  for (unsigned opcode :
       std::initializer_list<unsigned>{Instruction::PHI, Instruction::Add, Instruction::Mul}) {
    EXPECT_EQ(count(opcode, 32), 1) << opcode; // %i, %next, %at
    EXPECT_EQ(count(opcode, 64), 1) << opcode; // %sum, %added, %scaled
  }
  EXPECT_EQ(count(Instruction::SDiv, 32), 1);
  EXPECT_EQ(count(Instruction::ICmp, 32), 1);
}

/// 3 i leaves the range of i32, i does not.
TEST_F(NarrowIndicesTest, WhatLeavesTheRangeStays) {
  narrow(makeLoop("1000000000"));
  EXPECT_EQ(count(Instruction::PHI, 32), 1);
  EXPECT_EQ(count(Instruction::Mul, 32), 0);
  EXPECT_EQ(count(Instruction::Mul, 64), 2);
}

TEST_F(NarrowIndicesTest, UnknownBoundsStay) {
  narrow(makeLoop("%seed"));
  EXPECT_EQ(count(Instruction::PHI, 64), 2);
  EXPECT_EQ(count(Instruction::ICmp, 64), 1);
  EXPECT_EQ(count(Instruction::SDiv, 64), 1);
}

} // namespace
