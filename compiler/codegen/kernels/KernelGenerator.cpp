//===- KernelGenerator.cpp - from a kernel's tensor program to its code ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/kernels/KernelGenerator.h"

#include "compiler/codegen/contraction/FusedContraction.h"
#include "compiler/codegen/conv/ConvKernel.h"
#include "compiler/codegen/loop/LoopKernel.h"
#include "compiler/codegen/pool/PoolKernel.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::codegen {

Type bufferElement(Type element) {
  Builder builder(element.getContext());
  if (element.isInteger(1))
    return builder.getI8Type();
  return element.isF16() || element.isBF16() ? Type(builder.getI16Type()) : element;
}

SmallVector<KernelBuffer> kernelBuffers(func::FuncOp function) {
  SmallVector<KernelBuffer> buffers;
  auto add = [&](Type type, bool written) {
    auto tensor = cast<RankedTensorType>(type);
    buffers.push_back({bufferElement(tensor.getElementType()), tensor.getNumElements(), written, true});
  };
  for (Type type : function.getArgumentTypes())
    add(type, false);
  for (Type type : function.getResultTypes())
    add(type, true);
  if (auto pairs = function->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace)) {
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2) {
      buffers[pairs[i]].distinct = false;
      buffers[function.getNumArguments() + pairs[i + 1]].distinct = false;
    }
  }
  return buffers;
}

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
    return generateConv(module, function, kernelBuffers(function), target, options.numerics);
  case plan::KernelKind::contraction:
    return generateFusedContraction(module, function, kernelBuffers(function), target, options.numerics);
  default:
    return generateLoopKernel(module, function, target, options.numerics);
  }
  return root.emitError("no kernel generator takes this operation"), failure();
}

} // namespace ortc::codegen
