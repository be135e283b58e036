// Relocations and levels of RISC-V. Words are what GNU's assembler and linker give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/riscv/Riscv.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;
using Relocated = Architecture::Relocated;

namespace {

struct Words {
  uint32_t first, second;
  bool operator==(const Words &) const = default;
};

Words relocate(const Relocation &relocation, Words words, Relocated expected = Relocated::Done) {
  uint8_t bytes[8];
  llvm::support::endian::write32le(bytes, words.first);
  llvm::support::endian::write32le(bytes + 4, words.second);
  EXPECT_EQ(riscv::architecture().relocate(relocation, bytes), expected);
  return {llvm::support::endian::read32le(bytes), llvm::support::endian::read32le(bytes + 4)};
}

TEST(RiscvTest, CallsAreTwoInstructions) {
  using namespace llvm::ELF;
  Words call = {0x00000097, 0x000080e7}; // auipc ra; jalr ra, ra
  EXPECT_EQ(relocate({R_RISCV_CALL_PLT, 0x1000, 0x2800, std::nullopt}, call),
            (Words{0x00002097, 0x800080e7}));
  EXPECT_EQ(relocate({R_RISCV_CALL_PLT, 0x1000, 0x0ff0, std::nullopt}, call),
            (Words{0x00000097, 0xff0080e7}));
  relocate({R_RISCV_CALL_PLT, 0, (int64_t(1) << 31) - 0x800, std::nullopt}, call, Relocated::TooFar);
}

TEST(RiscvTest, TheSecondPartOfAnAddressFollowsTheFirst) {
  using namespace llvm::ELF;
  EXPECT_EQ(relocate({R_RISCV_PCREL_HI20, 0x1000, 0x3804, std::nullopt}, {0x00000517, 0}), // auipc a0
            (Words{0x00003517, 0}));
  // `target` is the place of the first part, whose distance was 0x2804.
  Relocation low = {R_RISCV_PCREL_LO12_I, 0x1004, 0x1000, 0x2804};
  EXPECT_EQ(relocate(low, {0x00052507, 0}), (Words{0x80452507, 0})); // flw fa0, (a0)
  low.type = R_RISCV_PCREL_LO12_S;
  EXPECT_EQ(relocate(low, {0x00a52027, 0}), (Words{0x80a52227, 0})); // fsw fa0, (a0)
  low.first.reset();
  relocate(low, {0x00a52027, 0}, Relocated::NotRelative);
}

TEST(RiscvTest, OthersAreRefused) {
  using namespace llvm::ELF;
  relocate({R_RISCV_GOT_HI20, 0, 0, std::nullopt}, {0x00000517, 0}, Relocated::NotRelative);
  relocate({R_RISCV_64, 0, 0, std::nullopt}, {0, 0}, Relocated::NotRelative);
  relocate({R_RISCV_RELAX, 0, 0, std::nullopt}, {0, 0}, Relocated::NotRelative); // code is not relaxed
}

TEST(RiscvTest, VectorsAreAFeature) {
  EXPECT_EQ(riscv::makeBase().isa.requiredFeatures, 0u);
  EXPECT_EQ(riscv::makeVector().isa.requiredFeatures, uint64_t(1) << 21);
  EXPECT_LT(riscv::makeBase().isa.vectorRegisters, riscv::makeVector().isa.vectorRegisters);
}

} // namespace
