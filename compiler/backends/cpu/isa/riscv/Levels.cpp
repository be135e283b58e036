// The levels of RISC-V.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/riscv/Riscv.h"

namespace ortc::cpu::riscv {

/// Rates are those of a board's core, at 1.5 GHz: no such processor has been measured.
static MachineModel makeMachine(double flopsPerCycle) {
  constexpr double kKiB = 1024;
  MachineModel machine;
  machine.core.flopRate = 1.5e9 * flopsPerCycle;
  machine.core.rates = {{32 * kKiB, 12e9}, {512 * kKiB, 8e9}, {1024 * kKiB * kKiB, 3e9}};
  machine.contraction.fetchesNext = false;
  return machine;
}

static Target makeTarget(const char *features) {
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &architecture();
  isa.triple = "riscv64-unknown-linux-gnu";
  isa.cpu = "generic-rv64";
  isa.features = features;
  isa.vectorBits = 128;
  isa.set(Instruction::FusedMultiplyAdd);
  return target;
}

/// A vector of four is four registers, of which there are 32.
Target makeBase() {
  Target target = makeTarget("+m,+a,+f,+d,+c,-relax");
  target.isa.vectorRegisters = 8;
  target.machine = makeMachine(2);
  target.machine.tiles.accumulators = 4;
  target.machine.tiles.convVectors = 1;
  return target;
}

Target makeVector() {
  Target target = makeTarget("+m,+a,+f,+d,+c,+v,+zvl128b,-relax");
  target.isa.vectorRegisters = 32;
  target.isa.requiredFeatures = ORTC_RISCV_V;
  target.machine = makeMachine(8);
  target.machine.tiles.accumulators = 24;
  target.machine.tiles.convVectors = 4;
  target.machine.tiles.farVectorCycles = target.machine.tiles.vectorCycles;
  return target;
}

} // namespace ortc::cpu::riscv
