// The kernels that programs call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/ProgramKernels.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <set>

using namespace mlir;

namespace ortc::kernels {

ProgramKernels findKernels(ModuleOp module) {
  ProgramKernels result;
  std::set<std::string> checks;
  SymbolTable symbols(module);
  module.walk([&](plan::StepOp step) {
    if (!result.numbers.try_emplace(step.getKernel().str(), result.names.size()).second)
      return;
    result.names.push_back(step.getKernel().str());
    auto function = symbols.lookup<func::FuncOp>(step.getKernel());
    function.walk([&](nn::CheckIndexOp check) {
      if (checks.insert(check.getTensor().str()).second)
        result.checkNames.push_back(check.getTensor().str());
    });
  });
  return result;
}

std::vector<int64_t> countCalls(Operation *scope, const ProgramKernels &kernels) {
  std::vector<int64_t> calls(kernels.names.size(), 0);
  scope->walk([&](plan::StepOp step) {
    int64_t times = 1;
    for (auto loop = step->getParentOfType<plan::LoopOp>(); loop;
         loop = loop->getParentOfType<plan::LoopOp>())
      times *= loop.getTripCount();
    calls[kernels.numbers.at(step.getKernel().str())] += times;
  });
  return calls;
}

} // namespace ortc::kernels
