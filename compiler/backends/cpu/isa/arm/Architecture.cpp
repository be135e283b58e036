// What only 32-bit Arm has in generated code, and the relocations of Arm instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#if defined(__arm__) && defined(__linux__)
#include <sys/auxv.h>
#endif

using namespace mlir;

namespace ortc::cpu {
namespace {

constexpr unsigned kFlushToZero = 1 << 24; // of FPSCR

class Arm final : public arm::Arm32 {
public:
  ortc_architecture format() const override { return ORTC_ARCH_ARMV7; }
  llvm::StringRef name() const override { return "Arm"; }
  std::optional<uint64_t> hostFeatures() const override {
#if defined(__arm__) && defined(__linux__)
    return getauxval(AT_HWCAP);
#else
    return std::nullopt;
#endif
  }

  uint8_t codeFiller() const override { return 0; }

  /// Calls and branches hold a distance in words, 24 bits with a sign; MOVW and MOVT the halves of one in two fields.
  std::optional<int64_t> implicitAddend(uint64_t type, const uint8_t *bytes) const override {
    uint32_t word = llvm::support::endian::read32le(bytes);
    switch (type) {
    case llvm::ELF::R_ARM_CALL:
    case llvm::ELF::R_ARM_JUMP24:
      return llvm::SignExtend64<26>(uint64_t(word & 0xffffff) << 2);
    case llvm::ELF::R_ARM_MOVW_PREL_NC:
    case llvm::ELF::R_ARM_MOVT_PREL:
      return llvm::SignExtend64<16>((word >> 4 & 0xf000) | (word & 0xfff));
    default:
      return static_cast<int32_t>(word);
    }
  }

  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    int64_t distance = relocation.distance();
    uint32_t word = llvm::support::endian::read32le(bytes);
    auto put = [&](uint32_t mask, uint32_t bits) {
      llvm::support::endian::write32le(bytes, (word & ~mask) | bits);
      return Relocated::Done;
    };
    auto putHalf = [&](int64_t half) {
      auto bits = static_cast<uint32_t>(half);
      return put(0xf0fff, (bits & 0xf000) << 4 | (bits & 0xfff));
    };
    switch (relocation.type) {
    case llvm::ELF::R_ARM_CALL:
    case llvm::ELF::R_ARM_JUMP24:
      if (!llvm::isInt<26>(distance))
        return Relocated::TooFar;
      return put(0xffffff, static_cast<uint32_t>(distance >> 2) & 0xffffff);
    case llvm::ELF::R_ARM_MOVW_PREL_NC:
      return putHalf(distance);
    case llvm::ELF::R_ARM_MOVT_PREL:
      return putHalf(distance >> 16);
    case llvm::ELF::R_ARM_REL32:
      return writeDistance(relocation, bytes);
    default:
      return Relocated::NotRelative;
    }
  }
};

} // namespace

uint16_t arm::Arm32::elfMachine() const { return llvm::ELF::EM_ARM; }

Value arm::Arm32::emitDenormalMode(OpBuilder &b, Location loc, bool areZero) const {
  Type i32 = b.getI32Type();
  Value before =
      LLVM::CallIntrinsicOp::create(b, loc, i32, b.getStringAttr("llvm.arm.get.fpscr"), ValueRange{})
          .getResult(0);
  emitRestoreMode(b, loc, withBits(b, loc, before, kFlushToZero, areZero));
  return before;
}

void arm::Arm32::emitRestoreMode(OpBuilder &b, Location loc, Value saved) const {
  LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr("llvm.arm.set.fpscr"), ValueRange{saved});
}

const Architecture &arm::architecture() {
  static const Arm architecture;
  return architecture;
}

#if defined(__arm__)

DenormalModeHere::DenormalModeHere(bool areZero) {
  uint32_t mode;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(mode));
  before = mode;
  __asm__ volatile("vmsr fpscr, %0" ::"r"(areZero ? mode | kFlushToZero : mode & ~kFlushToZero));
}
DenormalModeHere::~DenormalModeHere() {
  __asm__ volatile("vmsr fpscr, %0" ::"r"(static_cast<uint32_t>(before)));
}

#endif

} // namespace ortc::cpu
