// Kernels that are one loop nest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/loop/LoopKernel.h"

#include "compiler/backends/cpu/loop/FusedScatter.h"
#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/cpu/loop/SingleKernels.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

static Operation *exitOf(func::FuncOp function) { return function.getBody().front().getTerminator(); }

static bool writesNothing(func::FuncOp function) {
  return llvm::all_of(function.getResultTypes(),
                      [](Type type) { return cast<ShapedType>(type).getNumElements() == 0; });
}

FailureOr<KernelInfo> generateLoopKernel(ModuleOp module, func::FuncOp function, const Target &target,
                                         Numerics numerics) {
  KernelInfo info;
  info.name = function.getSymName().str();
  LoopBuilder builder(UnknownLoc::get(module.getContext()), module.getContext());
  ValueRange inputs = function.getArguments(), outputs = exitOf(function)->getOperands();
  auto buffers = kernelBuffers(function);
  if (writesNothing(function)) {
    createKernelFunction(builder, module, info, buffers);
    return info;
  }
  if (isSingleKernel(function))
    return emitSingleKernel(builder, module, function, buffers, info, target);

  std::string reason;
  if (auto fused = FusedScatter::analyze(inputs, outputs, reason))
    return emitFusedScatter(*fused, builder, module, buffers, info, target, numerics);
  auto program = analyzeLoops(inputs, outputs, reason);
  if (!program)
    return function.emitError() << "cannot be one loop kernel: " << reason, failure();
  LoopPlan plan = planLoops(*program, target);
  info.chunks = plan.chunks;
  info.workspaceBytesPerWorker = plan.workspaceBytes;
  KernelFunction kernel = createKernelFunction(builder, module, info, buffers);
  emitLoops(builder, *program, plan, kernel, mathOptionsOf(target, numerics));
  return info;
}

} // namespace ortc::cpu
