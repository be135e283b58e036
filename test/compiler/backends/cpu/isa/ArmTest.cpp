// Relocations and the level of 32-bit Arm. Words are what GNU's assembler and linker give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;
using Relocated = Architecture::Relocated;

namespace {

/// The word after it was relocated at `place` to what lies at `symbol`; its addend stands in it.
uint32_t relocate(uint64_t type, uint32_t word, int64_t place, int64_t symbol,
                  Relocated expected = Relocated::Done) {
  uint8_t bytes[4];
  llvm::support::endian::write32le(bytes, word);
  int64_t addend = arm::architecture().implicitAddend(type, bytes).value();
  EXPECT_EQ(arm::architecture().relocate({type, place, symbol + addend, std::nullopt}, bytes), expected);
  return llvm::support::endian::read32le(bytes);
}

TEST(ArmTest, CallsCountWordsFromTheSecondNext) {
  using namespace llvm::ELF;
  EXPECT_EQ(relocate(R_ARM_CALL, 0xebfffffe, 0x1000, 0x2000), 0xeb0003feu); // bl
  EXPECT_EQ(relocate(R_ARM_CALL, 0xebfffffe, 0x2000, 0x1000), 0xebfffbfeu); // backwards
  EXPECT_EQ(relocate(R_ARM_JUMP24, 0xeafffffe, 0x40, 0x48), 0xea000000u);   // b
  relocate(R_ARM_CALL, 0xebfffffe, 0, (int64_t(1) << 25) + 8, Relocated::TooFar);
}

TEST(ArmTest, DistancesAreWordsOrHalves) {
  using namespace llvm::ELF;
  EXPECT_EQ(relocate(R_ARM_REL32, 0xfffffff8, 0x1010, 0x1000), 0xffffffe8u);
  EXPECT_EQ(relocate(R_ARM_MOVW_PREL_NC, 0xe30f0ff8, 0x1000, 0x23456), 0xe302044eu); // movw r0
  EXPECT_EQ(relocate(R_ARM_MOVT_PREL, 0xe34f0ff8, 0x1000, 0x23456), 0xe3400002u);    // movt r0
}

TEST(ArmTest, OthersAreRefused) {
  using namespace llvm::ELF;
  relocate(R_ARM_ABS32, 0, 0, 0, Relocated::NotRelative);
  relocate(R_ARM_GOT_PREL, 0, 0, 0, Relocated::NotRelative);
}

TEST(ArmTest, PortableNumericsDoWithoutVectors) {
  Target fast = *findTarget("armv7"), portable = *findTarget("armv7", ortc::Numerics::Portable);
  EXPECT_EQ(fast.name, portable.name);
  EXPECT_EQ(fast.isa.requiredFeatures & ~portable.isa.requiredFeatures, ORTC_ARM_NEON);
  EXPECT_EQ(portable.isa.features, "-neon");
}

} // namespace
