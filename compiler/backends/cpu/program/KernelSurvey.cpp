// What kernels take, known before there is code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/program/KernelSurvey.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::cpu {

static bool usesDoubles(func::FuncOp function) {
  auto isDouble = [](Type type) { return cast<ShapedType>(type).getElementType().isF64(); };
  return llvm::any_of(function.getResultTypes(), isDouble);
}

Status annotateKernels(ModuleOp module, const Target &target, const CodeOptions &options, bool compiles,
                       MadeKernels &made) {
  std::vector<func::FuncOp> functions;
  std::vector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(plan::kKind)) {
      functions.push_back(function);
      names.push_back(function.getSymName().str());
    }
  ORTC_TRY(makeKernels(module, names, target, options, compiles, made));
  Builder builder(module.getContext());
  CostModel model = getCostTable(target.machine);
  for (auto [function, name] : llvm::zip_equal(functions, names)) {
    const KernelInfo &info = made[name].info;
    double seconds = estimateSeconds(kernels::workOf(function), usesDoubles(function), model);
    function->setAttr(plan::kTime, builder.getI64IntegerAttr(static_cast<int64_t>(seconds * 1e12)));
    int64_t bytes = std::max(scratchBytes(info, target), plan::scratchOf(function));
    function->setAttr(plan::kScratch, builder.getI64IntegerAttr(bytes));
  }
  return {};
}

} // namespace ortc::cpu
