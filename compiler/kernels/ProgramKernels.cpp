// The kernels that programs call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/ProgramKernels.h"

#include "compiler/kernels/KernelForm.h"
#include "dialects/nn/NnDialect.h"

#include <set>

using namespace mlir;

namespace ortc::kernels {

ProgramKernels findKernels(ModuleOp module, const ProgramKernels *before) {
  ProgramKernels result;
  if (before) {
    result.first = before->first + before->names.size();
    result.checkNames = before->checkNames;
  }
  std::set<std::string> checks(result.checkNames.begin(), result.checkNames.end());
  SymbolTable symbols(module);
  module.walk([&](plan::StepOp step) {
    if (!result.numbers.try_emplace(step.getKernel().str(), result.names.size()).second)
      return;
    result.names.push_back(step.getKernel().str());
    auto function = symbols.lookup<func::FuncOp>(step.getKernel());
    result.works.push_back(workOf(function));
    function.walk([&](nn::CheckIndexOp check) {
      if (checks.insert(check.getTensor().str()).second)
        result.checkNames.push_back(check.getTensor().str());
    });
  });
  return result;
}

KernelWork workOf(func::FuncOp kernel) {
  auto kind = kernel->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue();
  return workOf(kind, kernel.getArguments(), kernel.getBody().front().getTerminator()->getOperands());
}

llvm::StringMap<plan::StepOp> findFirstSteps(ModuleOp module) {
  llvm::StringMap<plan::StepOp> steps;
  module.walk([&](plan::StepOp step) { steps.try_emplace(step.getKernel(), step); });
  return steps;
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
