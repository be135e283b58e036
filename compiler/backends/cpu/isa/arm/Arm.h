// Arm of 32 bits: processors with an operating system, and microcontrollers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::arm {

/// What Arm and Thumb instructions share: the object format, and the mode that makes denormal numbers zero.
class Arm32 : public Architecture {
public:
  uint16_t elfMachine() const override;
  mlir::Value emitDenormalMode(mlir::OpBuilder &builder, mlir::Location loc, bool areZero) const override;
  void emitRestoreMode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value saved) const override;
};

/// ARMv7-A, in Arm instructions.
const Architecture &architecture();
/// Cortex-M, in Thumb instructions.
const Architecture &thumb();

// One level: ARMv7-A with NEON, VFPv4 and division of integers, as phones have had it since 2012. NEON makes denormal
// numbers zero whatever the mode is, so portable numerics do without it.
Target makeV7();
Target makeV7Scalar();

// Microcontrollers, each with the least floating point unit that its name promises: float32 alone, but for the M55.
// Vectors of the M55 (Helium) make denormal numbers zero, as NEON does.
Target makeM4();
Target makeM7();
Target makeM33();
Target makeM55();
Target makeM55Scalar();

} // namespace ortc::cpu::arm
