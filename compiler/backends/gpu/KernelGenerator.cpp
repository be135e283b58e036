// From a kernel's tensor program to its launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/KernelGenerator.h"

#include "compiler/backends/gpu/CheckKernel.h"
#include "compiler/backends/gpu/ChunkKernel.h"
#include "compiler/backends/gpu/PoolKernel.h"
#include "compiler/backends/gpu/attention/AttentionKernel.h"
#include "compiler/backends/gpu/contraction/ContractionKernel.h"
#include "compiler/backends/gpu/conv/ConvKernel.h"
#include "compiler/backends/gpu/loop/JoinedKernel.h"
#include "compiler/backends/gpu/loop/LoopKernel.h"
#include "compiler/backends/gpu/scatter/ScatterKernel.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::gpu {

static ValueRange outputsOf(func::FuncOp function) {
  return function.getBody().front().getTerminator()->getOperands();
}

/// Adds the launches that the kernel's kind needs.
static LogicalResult addLaunches(KernelBuilder &kernel, ModuleOp module, func::FuncOp function,
                                 const GeneratorOptions &options) {
  switch (function->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue()) {
  case plan::KernelKind::check:
    generateCheck(kernel, function, options);
    return success();
  case plan::KernelKind::conv:
    return generateConv(kernel, function, options);
  case plan::KernelKind::pool:
    return generatePool(kernel, function);
  case plan::KernelKind::contraction:
    return generateContraction(kernel, function, options);
  case plan::KernelKind::attention:
    return generateAttention(kernel, function, options);
  case plan::KernelKind::joined:
    return generateJoined(kernel, function, options);
  default:
    break;
  }
  if (generateScatter(kernel, function, options))
    return success();
  std::string reason;
  auto program = analyzeLoops(function.getArguments(), outputsOf(function), reason);
  if (!program)
    return generateChunks(kernel, module, function, options);
  emitLoops(kernel, *program, options);
  return success();
}

FailureOr<GpuKernel> generateKernel(ModuleOp module, func::FuncOp function, const Processor &processor,
                                    const GeneratorOptions &options) {
  KernelBuilder kernel(module, function, processor, options);
  bool writesNothing = llvm::all_of(outputsOf(function), [](Value value) {
    return cast<ShapedType>(value.getType()).getNumElements() == 0;
  });
  if (!writesNothing && failed(addLaunches(kernel, module, function, options)))
    return failure();
  return kernel.take();
}

} // namespace ortc::gpu
