// Relocations of Thumb instructions, and the levels of microcontrollers. Words are what LLVM's assembler gives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;
using namespace llvm::ELF;
using Relocated = Architecture::Relocated;

namespace {

/// The instruction after it was relocated at `place` to the address `symbol`; its addend stands in it. Bytes are in the
/// order of the assembler's listing.
uint32_t relocate(uint64_t type, uint32_t listed, int64_t place, int64_t symbol,
                  Relocated expected = Relocated::Done) {
  uint8_t bytes[4];
  llvm::support::endian::write32be(bytes, listed);
  int64_t addend = arm::thumb().implicitAddend(type, bytes).value();
  EXPECT_EQ(arm::thumb().relocate({type, place, symbol + addend, std::nullopt}, bytes), expected);
  return llvm::support::endian::read32be(bytes);
}

TEST(ThumbTest, CallsGoForthAndBack) {
  constexpr uint32_t kToItself = 0xfff7feff;                                        // bl #-4
  EXPECT_EQ(relocate(R_ARM_THM_CALL, kToItself, 0x1000, 0x2001), 0x00f0feffu);      // bl #4092
  EXPECT_EQ(relocate(R_ARM_THM_CALL, kToItself, 0x2000, 0x1001), 0xfef7feffu);      // bl #-4100
  EXPECT_EQ(relocate(R_ARM_THM_CALL, kToItself, 0, 0xfffffe + 4 + 1), 0xfff3ffd7u); // bl #16777214
  EXPECT_EQ(relocate(R_ARM_THM_JUMP24, 0xfff7febf, 0x40, 0x48 + 1), 0x00f002b8u);   // b.w #4
  relocate(R_ARM_THM_CALL, kToItself, 0, (1 << 24) + 4, Relocated::TooFar);
}

TEST(ThumbTest, DistancesAreWordsOrHalves) {
  EXPECT_EQ(relocate(R_ARM_THM_MOVW_PREL_NC, 0x40f20000, 0x1000, 0x2344a), 0x42f24a40u); // movw r0, #9290
  EXPECT_EQ(relocate(R_ARM_THM_MOVT_PREL, 0xc0f20000, 0x1000, 0x2344a), 0xc0f20200u);    // movt r0, #2
  EXPECT_EQ(relocate(R_ARM_REL32, 0xf8ffffff, 0x1010, 0x1000), 0xe8ffffffu);
}

TEST(ThumbTest, OthersAreRefused) {
  relocate(R_ARM_ABS32, 0, 0, 0, Relocated::NotRelative);
  relocate(R_ARM_CALL, 0, 0, 0, Relocated::NotRelative);
}

TEST(ThumbTest, PortableNumericsDoWithoutHelium) {
  Target fast = *findTarget("cortex-m55"), portable = *findTarget("cortex-m55", ortc::Numerics::Portable);
  EXPECT_EQ(fast.isa.requiredFeatures & ~portable.isa.requiredFeatures, ORTC_CORTEX_M_MVE);
  EXPECT_EQ(fast.lanes(32), 4);
  EXPECT_EQ(portable.lanes(32), 1);
}

TEST(ThumbTest, SinglePrecisionHasDoublesWrittenOut) {
  for (const char *name : {"cortex-m4", "cortex-m7", "cortex-m33"})
    EXPECT_TRUE(findTarget(name)->isa.softDoubles) << name;
  EXPECT_FALSE(findTarget("cortex-m55")->isa.softDoubles);
}

} // namespace
