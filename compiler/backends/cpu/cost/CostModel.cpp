// How long kernels should take: a model of one core that needs nothing but counts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/cost/CostModel.h"

#include <algorithm>

namespace ortc::cpu {

CostModel getCostTable(int lanes) {
  constexpr double kClock = 3.5e9, kKiB = 1024;
  CostModel model;
  // Multiplications and additions on two units below 8 lanes; from there on fused ones: 32 a cycle, or 16
  // lanes at once.
  model.machine.flopRate = kClock * (lanes >= 8 ? 32 : 2.0 * lanes);
  model.machine.rates = {{32 * kKiB, 200e9},      {512 * kKiB, 80e9},       {2048 * kKiB, 50e9},
                         {8 * kKiB * kKiB, 30e9}, {64 * kKiB * kKiB, 25e9}, {1024 * kKiB * kKiB, 20e9}};
  return model;
}

CostModel measureCostModel(int lanes) {
  CostModel model;
  model.machine = host::measureMachine(lanes, 1);
  model.isMeasured = true;
  return model;
}

double estimateSeconds(const KernelWork &work, const CostModel &model) {
  double unit = work.isDouble ? 2 : 1;     // a vector holds half as many
  double operations = 2 * work.operations; // at half the rate of flops
  return model.callSeconds + model.machine.getBound(unit * std::max(work.flops, operations), work.bytes);
}

} // namespace ortc::cpu
