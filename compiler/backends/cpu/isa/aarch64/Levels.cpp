// The one level of AArch64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/aarch64/Aarch64.h"

namespace ortc::cpu::aarch64 {

/// Rates are those of a small server's or a phone's large core (two multiply-adds of 128 bits a cycle at 2.5 GHz): no
/// such processor has been measured. 32 registers take the tiles of AVX-512, of a quarter of its width.
static MachineModel makeMachine() {
  constexpr double kKiB = 1024;
  MachineModel machine;
  machine.core.flopRate = 2.5e9 * 16;
  machine.core.rates = {
      {32 * kKiB, 60e9}, {512 * kKiB, 40e9}, {8 * kKiB * kKiB, 20e9}, {1024 * kKiB * kKiB, 10e9}};
  machine.tiles.accumulators = 24;
  machine.tiles.convVectors = 4;
  machine.tiles.farVectorCycles = machine.tiles.vectorCycles;
  machine.contraction.fetchesNext = false;
  return machine;
}

Target makeBase() {
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &architecture();
  isa.triple = "aarch64-unknown-linux-gnu";
  isa.cpu = "generic";
  // Code is the same for every system, and Android, Windows and Apple's keep this register for themselves.
  isa.features = "+reserve-x18";
  isa.vectorBits = 128;
  isa.vectorRegisters = 32;
  for (Instruction own : {Instruction::FusedMultiplyAdd, Instruction::Rounding, Instruction::HalfConversion})
    isa.set(own);
  target.machine = makeMachine();
  return target;
}

} // namespace ortc::cpu::aarch64
