// What an instruction set offers: one description per architecture and level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace ortc::cpu {

class Architecture;

/// Instructions that generators ask for by name. A generator never concludes one from the number of lanes or registers.
enum class Instruction : unsigned {
  FusedMultiplyAdd, ///< a * b + c, rounded once
  Rounding,         ///< floor, ceil, trunc and roundeven
  Scaling,          ///< x * 2^n, rounded once (Architecture::emitScaling)
  HalfConversion,   ///< f16 to f32 and back, rounded to nearest even
  MatrixUnit,       ///< products of tiles of bf16 (Architecture::emitBlockProduct)
  PairProduct,      ///< sums of products of pairs of bf16 in lanes of 32 bits (Architecture::emitPairProduct)
  ByteLookup,       ///< elements of tables of 256 bytes for kLookupLanes places (Architecture::emitLookup)
};

/// Lanes of a lookup by bytes.
inline constexpr int64_t kLookupLanes = 64;

/// One level of an architecture. Plain data: copy freely.
struct Isa {
  const Architecture *architecture = nullptr; ///< never null in what `findTarget` gives

  std::string triple;   ///< LLVM triple
  std::string cpu;      ///< LLVM -mcpu: with `features`, the instructions that may be used
  std::string features; ///< LLVM -mattr, comma separated, may be empty
  std::string tuneCpu;  ///< LLVM -mtune, may be empty

  /// CPU features the loader must find, one bit each (ortc/format.h has those of each architecture).
  uint64_t requiredFeatures = 0;

  unsigned pointerBytes = 8;
  /// Registers have 32 bits. Indices are computed in so many; divisions of i64, and conversions between i64 and
  /// floats, would be calls of a library and are written out.
  bool expandsLong = false;
  /// Operations of f64 would be calls of a library: they are written out.
  bool softDoubles = false;

  bool forSize = false; ///< code is small, not fast (preferSize)

  int64_t vectorBits = 128;     ///< of a vector register
  int64_t vectorRegisters = 16; ///< architectural ones
  uint32_t instructions = 0;    ///< a bit for each Instruction

  bool has(Instruction instruction) const { return instructions >> static_cast<unsigned>(instruction) & 1; }
  void set(Instruction instruction, bool value = true) {
    uint32_t bit = 1u << static_cast<unsigned>(instruction);
    instructions = value ? instructions | bit : instructions & ~bit;
  }
  /// Lanes of a vector register for elements of `bits` bits.
  int64_t lanes(unsigned bits) const { return vectorBits > bits ? vectorBits / bits : 1; }
};

} // namespace ortc::cpu
