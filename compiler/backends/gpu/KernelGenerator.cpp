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

FailureOr<GpuKernel> generateKernel(ModuleOp module, func::FuncOp function, const Processor &processor,
                                    const GeneratorOptions &options) {
  KernelBuilder kernel(module, function, processor, options);
  ValueRange outputs = function.getBody().front().getTerminator()->getOperands();
  bool writesNothing = llvm::all_of(
      outputs, [](Value value) { return cast<ShapedType>(value.getType()).getNumElements() == 0; });
  if (writesNothing)
    return kernel.take();
  switch (function->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue()) {
  case plan::KernelKind::check:
    generateCheck(kernel, function, options);
    return kernel.take();
  case plan::KernelKind::conv:
    if (failed(generateConv(kernel, function, options)))
      return failure();
    return kernel.take();
  case plan::KernelKind::pool:
    if (failed(generatePool(kernel, function)))
      return failure();
    return kernel.take();
  case plan::KernelKind::contraction:
    if (failed(generateContraction(kernel, function, options)))
      return failure();
    return kernel.take();
  case plan::KernelKind::attention:
    if (failed(generateAttention(kernel, function, options)))
      return failure();
    return kernel.take();
  case plan::KernelKind::joined:
    if (failed(generateJoined(kernel, function, options)))
      return failure();
    return kernel.take();
  default:
    break;
  }
  if (generateScatter(kernel, function, options))
    return kernel.take();
  std::string reason;
  auto program = analyzeLoops(function.getArguments(), outputs, reason);
  if (!program)
    return generateChunks(module, function, processor, options);
  emitLoops(kernel, *program, options);
  return kernel.take();
}

} // namespace ortc::gpu
