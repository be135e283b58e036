// The one level of 32-bit Arm, with vectors and without.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

namespace ortc::cpu::arm {

/// Rates are those of a phone's small core, at 1.2 GHz: no such processor has been measured.
static MachineModel makeMachine(double flopsPerCycle) {
  constexpr double kKiB = 1024;
  MachineModel machine;
  machine.core.flopRate = 1.2e9 * flopsPerCycle;
  machine.core.rates = {{32 * kKiB, 8e9}, {512 * kKiB, 4e9}, {1024 * kKiB * kKiB, 2e9}};
  machine.contraction.fetchesNext = false;
  return machine;
}

static Target makeTarget(const char *features) {
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &architecture();
  isa.triple = "armv7-unknown-linux-gnueabihf";
  isa.cpu = "cortex-a7";
  isa.features = features;
  isa.requiredFeatures = ORTC_ARM_VFPV4 | ORTC_ARM_IDIVA;
  isa.vectorBits = 128;
  isa.pointerBytes = 4;
  isa.expandsLong = true;
  isa.set(Instruction::FusedMultiplyAdd);
  return target;
}

Target makeV7() {
  Target target = makeTarget("");
  target.isa.requiredFeatures |= ORTC_ARM_NEON;
  target.isa.vectorRegisters = 16;
  target.machine = makeMachine(4);
  return target;
}

/// A vector of four is four registers, of which there are 32.
Target makeV7Scalar() {
  Target target = makeTarget("-neon");
  target.isa.vectorRegisters = 8;
  target.machine = makeMachine(1);
  target.machine.tiles.accumulators = 4;
  target.machine.tiles.convVectors = 1;
  return target;
}

} // namespace ortc::cpu::arm
