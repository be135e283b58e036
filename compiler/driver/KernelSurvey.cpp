// What kernels take, known before there is code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/KernelSurvey.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::driver {

cpu::KernelWork workOf(const cpu::KernelInfo &info, bool isDouble) {
  cpu::KernelWork work;
  work.flops = static_cast<double>(info.flops);
  work.operations = static_cast<double>(info.cost);
  work.bytes = static_cast<double>(info.bytesRead + info.bytesWritten);
  work.isDouble = isDouble;
  return work;
}

static bool usesDoubles(func::FuncOp function) {
  auto isDouble = [](Type type) { return cast<ShapedType>(type).getElementType().isF64(); };
  return llvm::any_of(function.getResultTypes(), isDouble);
}

bool annotateKernels(ModuleOp module, const cpu::Target &target, const KernelOptions &options,
                     std::string &error) {
  std::vector<func::FuncOp> functions;
  std::vector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(plan::kKind)) {
      functions.push_back(function);
      names.push_back(function.getSymName().str());
    }
  std::vector<cpu::KernelInfo> infos;
  if (!surveyKernels(module, names, target, options, infos, error))
    return false;
  Builder builder(module.getContext());
  cpu::CostModel model = cpu::getCostTable(target.machine);
  for (auto [function, info] : llvm::zip_equal(functions, infos)) {
    double seconds = cpu::estimateSeconds(workOf(info, usesDoubles(function)), model);
    function->setAttr(plan::kTime, builder.getI64IntegerAttr(static_cast<int64_t>(seconds * 1e12)));
    int64_t bytes = std::max(scratchBytes(info, target), plan::scratchOf(function));
    function->setAttr(plan::kScratch, builder.getI64IntegerAttr(bytes));
  }
  return true;
}

} // namespace ortc::driver
