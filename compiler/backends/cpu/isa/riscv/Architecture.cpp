// What only RISC-V has in generated code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/riscv/Riscv.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#if defined(__riscv) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace ortc::cpu {
namespace {

class Riscv final : public Architecture {
public:
  ortc_architecture format() const override { return ORTC_ARCH_RISCV64; }
  llvm::StringRef name() const override { return "RISC-V"; }
  std::optional<uint64_t> hostFeatures() const override {
#if defined(__riscv) && __riscv_xlen == 64 && defined(__linux__)
    return getauxval(AT_HWCAP);
#else
    return std::nullopt;
#endif
  }

  uint16_t elfMachine() const override { return llvm::ELF::EM_RISCV; }
  uint8_t codeFiller() const override { return 0; } // an instruction that does not exist

  /// Distances in two instructions: the upper 20 bits, and 12 with a sign. Of an address, the second relocation names
  /// the first one's place.
  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    int64_t distance = relocation.distance();
    auto put = [&](size_t at, uint32_t bits) {
      llvm::support::endian::write32le(bytes + at, llvm::support::endian::read32le(bytes + at) | bits);
      return Relocated::Done;
    };
    auto upper = [](int64_t value) { return static_cast<uint32_t>(value + 0x800) & 0xfffff000; };
    auto low = [](int64_t value) { return static_cast<uint32_t>(value) & 0xfff; };
    bool reaches = llvm::isInt<32>(distance + 0x800);
    switch (relocation.type) {
    case llvm::ELF::R_RISCV_CALL_PLT:
      if (!reaches)
        return Relocated::TooFar;
      put(0, upper(distance));
      return put(4, low(distance) << 20);
    case llvm::ELF::R_RISCV_PCREL_HI20:
      return reaches ? put(0, upper(distance)) : Relocated::TooFar;
    case llvm::ELF::R_RISCV_PCREL_LO12_I:
    case llvm::ELF::R_RISCV_PCREL_LO12_S: {
      if (!relocation.first)
        return Relocated::NotRelative;
      uint32_t bits = low(*relocation.first);
      return put(0, relocation.type == llvm::ELF::R_RISCV_PCREL_LO12_I ? bits << 20
                                                                       : bits >> 5 << 25 | (bits & 31) << 7);
    }
    case llvm::ELF::R_RISCV_32_PCREL:
      return writeDistance(relocation, bytes);
    case llvm::ELF::R_RISCV_ADD32: // with SUB32 a difference of two places
      llvm::support::endian::write32le(bytes, llvm::support::endian::read32le(bytes) +
                                                  static_cast<uint32_t>(relocation.target));
      return Relocated::Done;
    case llvm::ELF::R_RISCV_SUB32:
      llvm::support::endian::write32le(bytes, llvm::support::endian::read32le(bytes) -
                                                  static_cast<uint32_t>(relocation.target));
      return Relocated::Done;
    default:
      return Relocated::NotRelative;
    }
  }
};

} // namespace

const Architecture &riscv::architecture() {
  static const Riscv architecture;
  return architecture;
}

#if defined(__riscv)

DenormalModeHere::DenormalModeHere(bool) {}
DenormalModeHere::~DenormalModeHere() = default;

#endif

} // namespace ortc::cpu
