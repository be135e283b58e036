// The one level of WebAssembly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/wasm/Wasm.h"

namespace ortc::cpu::wasm {

/// Rates are those of a laptop's core that runs 128 bits at a time. Engines put values into the registers of the
/// machine, of which x86-64 has 16.
static MachineModel makeMachine() {
  constexpr double kKiB = 1024;
  MachineModel machine;
  machine.core.flopRate = 3e9 * 8;
  machine.core.rates = {
      {32 * kKiB, 60e9}, {512 * kKiB, 40e9}, {8 * kKiB * kKiB, 20e9}, {1024 * kKiB * kKiB, 10e9}};
  machine.contraction.fetchesNext = false;
  return machine;
}

Target makeBase() {
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &architecture();
  isa.triple = "wasm32-unknown-unknown";
  isa.cpu = "generic";
  isa.features = "+simd128,+sign-ext,+nontrapping-fptoint,+bulk-memory";
  isa.vectorBits = 128;
  isa.vectorRegisters = 16;
  isa.pointerBytes = 4;
  isa.set(Instruction::Rounding);
  target.machine = makeMachine();
  return target;
}

} // namespace ortc::cpu::wasm
