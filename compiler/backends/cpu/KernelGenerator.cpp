// From a kernel's tensor program to its code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/KernelGenerator.h"

#include "compiler/backends/cpu/contraction/FusedContraction.h"
#include "compiler/backends/cpu/conv/ConvKernel.h"
#include "compiler/backends/cpu/loop/LoopKernel.h"
#include "compiler/backends/cpu/pool/PoolKernel.h"
#include "compiler/backends/emit/PoolElement.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

FailureOr<KernelInfo> generateKernel(ModuleOp module, func::FuncOp function, const Target &target,
                                     const GeneratorOptions &options) {
  Operation &root = function.getBody().front().front();
  auto kind = function->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue();
  StringRef name = function.getSymName();
  switch (kind) {
  case plan::KernelKind::check: {
    auto check = cast<nn::CheckIndexOp>(root);
    return generateCheck(module, function, options.checkNames.lookup(check.getTensor()));
  }
  case plan::KernelKind::pool:
    if (isPool(&root))
      return generatePoolKernel(module, name, &root, target);
    break;
  case plan::KernelKind::conv:
    return generateConv(module, function, kernelBuffers(function), target, options.numerics, options.choices);
  case plan::KernelKind::contraction:
    return generateFusedContraction(module, function, kernelBuffers(function), target, options.numerics,
                                    options.choices);
  default:
    return generateLoopKernel(module, function, target, options.numerics);
  }
  return root.emitError("no kernel generator takes this operation"), failure();
}

} // namespace ortc::cpu
