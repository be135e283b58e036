// Relocations and the level of AArch64. Words are what GNU's assembler and linker give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/aarch64/Aarch64.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;
using Relocated = Architecture::Relocated;

namespace {

/// An instruction at a place that refers to a target; what it becomes.
struct Case {
  uint64_t type;
  uint32_t word;
  int64_t place, target;
  uint32_t wanted;
};

uint32_t relocate(const Case &each, Relocated expected = Relocated::Done) {
  uint8_t bytes[8] = {};
  llvm::support::endian::write32le(bytes, each.word);
  EXPECT_EQ(aarch64::architecture().relocate({each.type, each.place, each.target, std::nullopt}, bytes),
            expected);
  return llvm::support::endian::read32le(bytes);
}

TEST(Aarch64Test, ReferencesInReachAreDone) {
  using namespace llvm::ELF;
  Case cases[] = {{R_AARCH64_CALL26, 0x94000000, 0x1000, 0x1010, 0x94000004},              // bl
                  {R_AARCH64_CALL26, 0x94000000, 0x1000, 0x0ffc, 0x97ffffff},              // bl, back
                  {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0x1234, 0x5678, 0x90000020},    // adrp x0
                  {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0x5ffc, 0x1000, 0x90ffffe0},    // adrp x0, back
                  {R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, 0x1238, 0x5678, 0x9119e000},     // add x0, x0
                  {R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, 0x1238, 0x5678, 0xb9467800},  // ldr w0, [x0]
                  {R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, 0x1238, 0x5670, 0x3dc19c00}, // ldr q0, [x0]
                  {R_AARCH64_PREL32, 0, 0x1000, 0x0ff0, 0xfffffff0}};
  for (const Case &each : cases)
    EXPECT_EQ(relocate(each), each.wanted) << std::hex << each.word << " at " << each.place;
}

TEST(Aarch64Test, OthersAreRefused) {
  using namespace llvm::ELF;
  relocate({R_AARCH64_CALL26, 0x94000000, 0, 1 << 27, 0}, Relocated::TooFar);
  relocate({R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0, int64_t(1) << 32, 0}, Relocated::TooFar);
  relocate({R_AARCH64_ADR_GOT_PAGE, 0x90000000, 0, 0, 0}, Relocated::NotRelative);
  relocate({R_AARCH64_ABS64, 0, 0, 0, 0}, Relocated::NotRelative);
}

TEST(Aarch64Test, EveryProcessorOfArmv8HasWhatTheLevelUses) {
  Target target = aarch64::makeBase();
  EXPECT_EQ(target.isa.requiredFeatures, 0u);
  EXPECT_EQ(target.isa.features, "+reserve-x18"); // of Android, Windows and Apple's systems
  EXPECT_EQ(target.lanes(32), 4);
  EXPECT_TRUE(target.has(Instruction::FusedMultiplyAdd));
  EXPECT_FALSE(target.has(Instruction::MatrixUnit));
}

} // namespace
