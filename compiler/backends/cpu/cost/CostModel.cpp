// How long kernels should take: a model of one core that needs nothing but counts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/cost/CostModel.h"

#include <algorithm>

namespace ortc::cpu {

CostModel getCostTable(const MachineModel &machine) {
  CostModel model;
  model.machine = machine.core;
  return model;
}

CostModel measureCostModel(int lanes) {
  CostModel model;
  model.machine = measureMachine(lanes, 1);
  model.isMeasured = true;
  return model;
}

double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const CostModel &model) {
  double unit = isDouble ? 2 : 1;                         // a vector holds half as many
  double operations = 2 * static_cast<double>(work.cost); // at half the rate of flops
  return model.callSeconds +
         model.machine.getBound(unit * std::max(static_cast<double>(work.flops), operations),
                                static_cast<double>(work.bytesRead + work.bytesWritten));
}

} // namespace ortc::cpu
