// What x86-64 machines are taken to be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles, chunks and thresholds were measured kernel by kernel on servers with AVX-512 and, for their narrower levels,
// on the same ones (docs/benchmarks.md). Levels with 16 registers have some figures of a Zen 3, which has no AVX-512:
// which rows are gathered and how deep, along how many rows columns are read in place, and what tiles ask for
// (gatheredStride, gatheredLeastDepth, gatheredDepth, inPlaceRows, fetchesNext;
// docs/benchmarks/kernels-avx2.md#products-on-cores-with-avx2). Rates are those of a server's core of recent years: one
// 512-bit or two 256-bit fused multiply-adds a cycle at 3.5 GHz.
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "compiler/kernels/SumOrder.h"

#include "llvm/ADT/StringRef.h"

namespace ortc::cpu::x86 {

MachineModel makeMachine(const Isa &isa) {
  constexpr double kClock = 3.5e9, kKiB = 1024;
  int64_t lanes = isa.lanes(32);
  MachineModel machine;
  // Multiplications and additions on two units below 8 lanes. From there on fused ones: two of 8 lanes or one of 16.
  machine.core.flopRate = kClock * (lanes >= 8 ? 32 : 2.0 * static_cast<double>(lanes));
  machine.core.rates = {{32 * kKiB, 200e9},      {512 * kKiB, 80e9},       {2048 * kKiB, 50e9},
                        {8 * kKiB * kKiB, 30e9}, {64 * kKiB * kKiB, 25e9}, {1024 * kKiB * kKiB, 20e9}};
  if (isa.vectorRegisters < 32) {
    // Half as many multiply-adds a cycle leave the time to read rows in place: measured on a Zen 1.
    if (isa.tuneCpu == "znver1")
      machine.contraction.gatheredStride = 4096;
    return machine;
  }
  machine.l2Bytes = 1 << 20;
  machine.tiles.accumulators = 24;
  machine.tiles.convVectors = 4;
  // With 32 registers no choice of tiles depends on where vectors come from.
  machine.tiles.farVectorCycles = machine.tiles.vectorCycles;
  machine.contraction.laneChunk = 256;
  machine.contraction.inPlaceRows = 192;
  machine.contraction.gatheredLeastDepth = 256;
  machine.contraction.gatheredDepth = kernels::kGatheredContractionDepth;
  machine.contraction.fetchesNext = false;
  if (!llvm::StringRef(isa.tuneCpu).starts_with("znver"))
    return machine;
  // Zen takes two cycles for 512 bits: with packed columns, the wait for the one line of a step of k is hidden.
  machine.contraction.gatheredPanels = 8;
  machine.contraction.streamedBytes = 64 << 20;
  return machine;
}

} // namespace ortc::cpu::x86
