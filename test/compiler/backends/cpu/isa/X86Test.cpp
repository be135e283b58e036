// What isa/x86 says of its levels, and the rules that only x86-64 has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/BinaryFormat/ELF.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ortc::cpu;

namespace {

struct Level {
  Target target;
  int64_t bits, registers, accumulators, convVectors, l2Bytes;
  bool fma, rounding, scaling;
};

TEST(X86Test, LevelsAreWhatTheyWereMeasuredAs) {
  Level levels[] = {{x86::makeV1(), 128, 16, 12, 2, 512 << 10, false, false, false},
                    {x86::makeV3(), 256, 16, 12, 2, 512 << 10, true, true, false},
                    {x86::makeV4(), 512, 32, 24, 4, 1 << 20, true, true, true}};
  for (const Level &level : levels) {
    const Isa &isa = level.target.isa;
    SCOPED_TRACE(isa.cpu);
    EXPECT_EQ(isa.vectorBits, level.bits);
    EXPECT_EQ(isa.vectorRegisters, level.registers);
    EXPECT_EQ(isa.has(Instruction::FusedMultiplyAdd), level.fma);
    EXPECT_EQ(isa.has(Instruction::Rounding), level.rounding);
    EXPECT_EQ(isa.has(Instruction::Scaling), level.scaling);
    EXPECT_EQ(isa.has(Instruction::HalfConversion), level.fma); // F16C came with AVX2
    EXPECT_FALSE(isa.has(Instruction::MatrixUnit));             // of no level
    EXPECT_FALSE(isa.has(Instruction::PairProduct));
    EXPECT_FALSE(isa.has(Instruction::ByteLookup));
    EXPECT_EQ(level.target.machine.tiles.accumulators, level.accumulators);
    EXPECT_EQ(level.target.machine.tiles.convVectors, level.convVectors);
    EXPECT_EQ(level.target.machine.l2Bytes, level.l2Bytes);
  }
}

TEST(X86Test, ProductsOfPairsAreForProcessorsWhereTheyAreFaster) {
  for (const char *cpu : {"znver4", "znver5"})
    EXPECT_TRUE(x86::hasFastPairs(cpu)) << cpu;
  for (const char *cpu : {"cooperlake", "sapphirerapids", "graniterapids", "skylake-avx512", ""})
    EXPECT_FALSE(x86::hasFastPairs(cpu)) << cpu;
}

TEST(X86Test, OnlyRelativeRelocationsInReachAreDone) {
  const Architecture &x86 = x86::architecture();
  uint8_t place[8] = {};
  auto relocate = [&](uint64_t type, int64_t distance) {
    return x86.relocate({type, 64, 64 + distance, std::nullopt}, place);
  };
  EXPECT_EQ(relocate(llvm::ELF::R_X86_64_PC32, -2), Architecture::Relocated::Done);
  EXPECT_EQ(place[0], 0xfe);
  EXPECT_EQ(place[3], 0xff);
  EXPECT_EQ(place[4], 0); // four bytes
  EXPECT_EQ(relocate(llvm::ELF::R_X86_64_PLT32, int64_t(1) << 31), Architecture::Relocated::TooFar);
  EXPECT_EQ(relocate(llvm::ELF::R_X86_64_PC64, int64_t(1) << 31), Architecture::Relocated::Done);
  EXPECT_EQ(place[3], 0x80);
  EXPECT_EQ(relocate(llvm::ELF::R_X86_64_64, 0), Architecture::Relocated::NotRelative);
}

TEST(X86Test, ScalesWholeVectorsOf16Floats) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, LLVM::LLVMDialect, vector::VectorDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  Location loc = b.getUnknownLoc();
  auto pieces = [&](Type type) -> int64_t {
    Value x = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
    if (!x86::architecture().emitScaling(b, loc, x, x))
      return 0;
    auto calls = module->getOps<LLVM::CallIntrinsicOp>();
    int64_t count = std::distance(calls.begin(), calls.end());
    module->getBody()->clear();
    return count;
  };
  EXPECT_EQ(pieces(VectorType::get({16}, b.getF32Type())), 1);
  EXPECT_EQ(pieces(VectorType::get({32}, b.getF32Type())), 2);
  EXPECT_EQ(pieces(VectorType::get({8}, b.getF32Type())), 0);
  EXPECT_EQ(pieces(VectorType::get({16}, b.getF64Type())), 0);
  EXPECT_EQ(pieces(b.getF32Type()), 0);
}

} // namespace
