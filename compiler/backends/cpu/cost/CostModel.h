// How long kernels should take: a model of one core that needs nothing but counts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel keeps the arithmetic units busy, or the way to memory, or is so small that calling it is what takes time:
//
//   seconds = call + max(flops / flop rate, cost / operation rate, bytes / copy rate of half as many)
//
// The flop rate is that of fused multiply-adds, which count as two; anything else is done at half of it.
// Bytes are those of the buffers, each read or written once. They are taken to be in the smallest cache that
// holds half of them, as what is written may lie where something was read (Machine::getBound), so the
// estimate is near what a kernel takes when it runs again and again, and below what it takes when its data
// come from farther away. Blocking that has to read something twice, vectors that are not full, and latencies
// are not in it: a kernel that takes much longer than its estimate is one to look at.
#pragma once

#include "compiler/backends/cpu/isa/MachineModel.h"
#include "compiler/kernels/KernelWork.h"

#include <cstdint>

namespace ortc::cpu {

struct CostModel {
  Machine machine;           ///< rates of one core, in f32
  bool isMeasured = false;   ///< on this machine; otherwise they are from the machine model
  double callSeconds = 3e-8; ///< to store the pointers to the buffers, and to call
};

/// The figures of the target's machine model.
CostModel getCostTable(const MachineModel &machine);

/// The rates of this machine, measured in a fraction of a second. Zeros where `lanes` needs what it does not have.
CostModel measureCostModel(int lanes);

/// Seconds that one call takes on one core. `isDouble`: arithmetic is in f64.
double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const CostModel &model);

} // namespace ortc::cpu
