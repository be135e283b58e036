// What kernels take, known before there is code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/program/KernelSurvey.h"

#include "compiler/backends/KernelJobs.h"

using namespace mlir;

namespace ortc::cpu {

Status annotateKernels(ModuleOp module, const Target &target, const CodeOptions &options, bool compiles,
                       MadeKernels &made) {
  std::vector<func::FuncOp> functions = backends::listKernels(module);
  std::vector<std::string> names;
  for (func::FuncOp function : functions)
    names.push_back(function.getSymName().str());
  ORTC_TRY(makeKernels(module, names, target, options, compiles, made));
  CostModel model = getCostTable(target.machine);
  for (auto [function, name] : llvm::zip_equal(functions, names)) {
    double seconds = estimateSeconds(kernels::workOf(function), backends::usesDoubles(function), model);
    backends::annotateKernel(function, seconds, scratchBytes(made[name].info, target));
  }
  return {};
}

} // namespace ortc::cpu
