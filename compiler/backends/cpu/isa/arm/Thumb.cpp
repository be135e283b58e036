// The relocations of Thumb instructions, which are two half words, the first at the lower address.
// Source: ELF for the Arm Architecture, and the encodings of BL, B.W, MOVW and MOVT in the Armv7-M manual.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm::support;

namespace ortc::cpu {
namespace {

/// The fields of a BL or B.W: a distance of 25 bits with a sign, whose lowest is 0.
struct Branch {
  static constexpr uint32_t kFirst = 0x07ff, kSecond = 0x2fff; // what the distance takes of the half words

  static int64_t read(uint32_t first, uint32_t second) {
    uint32_t sign = first >> 10 & 1, high = ~(second >> 13 ^ sign) & 1, low = ~(second >> 11 ^ sign) & 1;
    return llvm::SignExtend64<25>(uint64_t(sign) << 24 | high << 23 | low << 22 | (first & 0x3ff) << 12 |
                                  (second & 0x7ff) << 1);
  }
  static void write(int64_t distance, uint32_t &first, uint32_t &second) {
    auto bits = static_cast<uint32_t>(distance);
    uint32_t sign = bits >> 24 & 1, high = ~(bits >> 23 ^ sign) & 1, low = ~(bits >> 22 ^ sign) & 1;
    first = (first & ~kFirst) | sign << 10 | (bits >> 12 & 0x3ff);
    second = (second & ~kSecond) | high << 13 | low << 11 | (bits >> 1 & 0x7ff);
  }
};

/// The 16 bits of a MOVW or MOVT, in four fields.
struct Half {
  static constexpr uint32_t kFirst = 0x040f, kSecond = 0x70ff;

  static int64_t read(uint32_t first, uint32_t second) {
    return llvm::SignExtend64<16>((first & 0xf) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 |
                                  (second & 0xff));
  }
  static void write(int64_t half, uint32_t &first, uint32_t &second) {
    auto bits = static_cast<uint32_t>(half);
    first = (first & ~kFirst) | (bits >> 12 & 0xf) | (bits >> 11 & 1) << 10;
    second = (second & ~kSecond) | (bits >> 8 & 7) << 12 | (bits & 0xff);
  }
};

class Thumb final : public arm::Arm32 {
public:
  ortc_architecture format() const override { return ORTC_ARCH_CORTEX_M; }
  llvm::StringRef name() const override { return "Thumb"; }
  std::optional<uint64_t> hostFeatures() const override { return std::nullopt; }
  uint8_t codeFiller() const override { return 0xde; } // UDF #0xde
  uint64_t functionBit() const override { return 1; }

  std::optional<int64_t> implicitAddend(uint64_t type, const uint8_t *bytes) const override {
    uint32_t first = endian::read16le(bytes), second = endian::read16le(bytes + 2);
    switch (type) {
    case llvm::ELF::R_ARM_THM_CALL:
    case llvm::ELF::R_ARM_THM_JUMP24:
      return Branch::read(first, second);
    case llvm::ELF::R_ARM_THM_MOVW_PREL_NC:
    case llvm::ELF::R_ARM_THM_MOVT_PREL:
      return Half::read(first, second);
    default:
      return static_cast<int32_t>(endian::read32le(bytes));
    }
  }

  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    uint32_t first = endian::read16le(bytes), second = endian::read16le(bytes + 2);
    int64_t distance = relocation.distance();
    switch (relocation.type) {
    case llvm::ELF::R_ARM_THM_CALL:
    case llvm::ELF::R_ARM_THM_JUMP24:
      if (!llvm::isInt<25>(distance))
        return Relocated::TooFar;
      Branch::write(distance, first, second);
      break;
    case llvm::ELF::R_ARM_THM_MOVW_PREL_NC:
      Half::write(distance, first, second);
      break;
    case llvm::ELF::R_ARM_THM_MOVT_PREL:
      Half::write(distance >> 16, first, second);
      break;
    case llvm::ELF::R_ARM_REL32:
      return writeDistance(relocation, bytes);
    default:
      return Relocated::NotRelative;
    }
    endian::write16le(bytes, static_cast<uint16_t>(first));
    endian::write16le(bytes + 2, static_cast<uint16_t>(second));
    return Relocated::Done;
  }
};

} // namespace

const Architecture &arm::thumb() {
  static const Thumb architecture;
  return architecture;
}

} // namespace ortc::cpu
