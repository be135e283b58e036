// Cortex-M: one thread, memory without caches or nearly so, and code that has to fit into flash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/arm/Arm.h"

#include <limits>

namespace ortc::cpu::arm {

/// Rates are estimates at 150 MHz: one multiply-add in two cycles, a word of memory in two. Nothing is copied to be
/// read faster, and there is nobody to hand work to.
static MachineModel makeMachine(double flopsPerCycle) {
  constexpr double kHertz = 150e6, kKiB = 1024;
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  MachineModel machine;
  machine.core.flopRate = kHertz * flopsPerCycle;
  machine.core.rates = {{64 * kKiB, kHertz * 2}, {1024 * kKiB, kHertz}};
  machine.tiles.accumulators = 8;
  machine.tiles.convVectors = 1;
  ContractionModel &contraction = machine.contraction;
  contraction.fetchesNext = false;
  contraction.inPlaceRows = contraction.nearRows = contraction.unalignedRows = kMany;
  contraction.inPlaceColumns = contraction.gatheredStride = kMany;
  machine.parallel.serialSeconds = std::numeric_limits<double>::infinity();
  return machine;
}

/// Scalars: float32 in 32 registers.
static Target makeTarget(const char *triple, const char *cpu, const char *features) {
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &thumb();
  isa.triple = triple;
  isa.cpu = cpu;
  isa.features = features;
  isa.vectorBits = 32;
  isa.vectorRegisters = 32;
  isa.pointerBytes = 4;
  isa.expandsLong = true;
  isa.set(Instruction::FusedMultiplyAdd);
  target.machine = makeMachine(1);
  target.prefersSize = true;
  return target;
}

Target makeM4() {
  Target target = makeTarget("thumbv7em-none-unknown-eabihf", "cortex-m4", "");
  target.isa.softDoubles = true;
  return target;
}

Target makeM7() {
  // Compilers have no macro for the version of its floating point unit: the instructions are those of the M4.
  Target target = makeTarget("thumbv7em-none-unknown-eabihf", "cortex-m7", "-fp64,-fp-armv8d16sp");
  target.isa.softDoubles = true;
  return target;
}

Target makeM33() {
  Target target = makeTarget("thumbv8m.main-none-unknown-eabihf", "cortex-m33", "");
  target.isa.requiredFeatures = ORTC_CORTEX_M_V8;
  target.isa.softDoubles = true;
  return target;
}

Target makeM55() {
  Target target = makeTarget("thumbv8.1m.main-none-unknown-eabihf", "cortex-m55", "");
  target.isa.requiredFeatures = ORTC_CORTEX_M_V8 | ORTC_CORTEX_M_FP64 | ORTC_CORTEX_M_MVE;
  target.isa.vectorBits = 128;
  target.isa.vectorRegisters = 8;
  target.machine = makeMachine(2);
  target.machine.tiles.accumulators = 4;
  return target;
}

Target makeM55Scalar() {
  Target target = makeM55();
  target.isa.features = "-mve";
  target.isa.requiredFeatures &= ~ORTC_CORTEX_M_MVE;
  target.isa.vectorBits = 32;
  target.isa.vectorRegisters = 32;
  return target;
}

} // namespace ortc::cpu::arm
