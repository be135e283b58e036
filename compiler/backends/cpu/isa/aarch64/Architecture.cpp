// What only AArch64 has in generated code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/aarch64/Aarch64.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

using namespace mlir;

namespace ortc::cpu {
namespace {

constexpr uint64_t kFlushToZero = 1 << 24; // of FPCR

class Aarch64 final : public Architecture {
public:
  ortc_architecture format() const override { return ORTC_ARCH_AARCH64; }
  llvm::StringRef name() const override { return "AArch64"; }
  std::optional<uint64_t> hostFeatures() const override {
#if defined(__aarch64__) && defined(__linux__)
    return getauxval(AT_HWCAP);
#elif defined(__aarch64__)
    return 0;
#else
    return std::nullopt;
#endif
  }

  uint16_t elfMachine() const override { return llvm::ELF::EM_AARCH64; }
  uint64_t blobAlignment() const override { return 4096; }
  uint8_t codeFiller() const override { return 0; } // udf

  /// Calls, and addresses in two parts: the 4 KiB that something lies in, relative to the place, and where in them.
  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    constexpr int64_t kPage = 4096;
    int64_t distance = relocation.distance();
    uint32_t word = llvm::support::endian::read32le(bytes);
    auto put = [&](uint32_t bits) {
      llvm::support::endian::write32le(bytes, word | bits);
      return Relocated::Done;
    };
    auto low = [&](unsigned shift) {
      return put(static_cast<uint32_t>(relocation.target % kPage >> shift << 10));
    };
    switch (relocation.type) {
    case llvm::ELF::R_AARCH64_CALL26:
    case llvm::ELF::R_AARCH64_JUMP26:
      if (!llvm::isInt<28>(distance))
        return Relocated::TooFar;
      return put(static_cast<uint32_t>(distance >> 2) & 0x3ffffff);
    case llvm::ELF::R_AARCH64_ADR_PREL_PG_HI21: {
      int64_t pages = relocation.target / kPage - relocation.place / kPage;
      if (!llvm::isInt<21>(pages))
        return Relocated::TooFar;
      auto bits = static_cast<uint32_t>(pages);
      return put((bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5);
    }
    case llvm::ELF::R_AARCH64_ADD_ABS_LO12_NC:
    case llvm::ELF::R_AARCH64_LDST8_ABS_LO12_NC:
      return low(0);
    case llvm::ELF::R_AARCH64_LDST16_ABS_LO12_NC:
      return low(1);
    case llvm::ELF::R_AARCH64_LDST32_ABS_LO12_NC:
      return low(2);
    case llvm::ELF::R_AARCH64_LDST64_ABS_LO12_NC:
      return low(3);
    case llvm::ELF::R_AARCH64_LDST128_ABS_LO12_NC:
      return low(4);
    case llvm::ELF::R_AARCH64_PREL32:
      return writeDistance(relocation, bytes);
    case llvm::ELF::R_AARCH64_PREL64:
      llvm::support::endian::write64le(bytes, static_cast<uint64_t>(distance));
      return Relocated::Done;
    default:
      return Relocated::NotRelative;
    }
  }

  Value emitDenormalMode(OpBuilder &b, Location loc, bool areZero) const override {
    Type i64 = b.getI64Type();
    Value before =
        LLVM::CallIntrinsicOp::create(b, loc, i64, b.getStringAttr("llvm.aarch64.get.fpcr"), ValueRange{})
            .getResult(0);
    emitRestoreMode(b, loc, withBits(b, loc, before, kFlushToZero, areZero));
    return before;
  }
  void emitRestoreMode(OpBuilder &b, Location loc, Value saved) const override {
    LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr("llvm.aarch64.set.fpcr"), ValueRange{saved});
  }
};

} // namespace

const Architecture &aarch64::architecture() {
  static const Aarch64 architecture;
  return architecture;
}

#if defined(__aarch64__)

DenormalModeHere::DenormalModeHere(bool areZero) {
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" ::"r"(areZero ? before | kFlushToZero : before & ~kFlushToZero));
}
DenormalModeHere::~DenormalModeHere() { __asm__ volatile("msr fpcr, %0" ::"r"(before)); }

#endif

} // namespace ortc::cpu
