// Kernels whose chunks are written for a thread of a CPU, a GPU's thread for each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/ChunkKernel.h"

#include "compiler/backends/cpu/KernelGenerator.h"

using namespace mlir;

namespace ortc::gpu {

/// A CPU with narrow vectors, of which a thread of a GPU can be one.
static cpu::Target makeThreadTarget(const GeneratorOptions &options) {
  cpu::Target target;
  target.name = "thread";
  target.isa.vectorBits = 64;
  target.isa.set(cpu::Instruction::FusedMultiplyAdd, options.usesFma());
  target.isa.set(cpu::Instruction::Rounding);
  target.workers = 1;
  return target;
}

LogicalResult generateChunks(KernelBuilder &kernel, ModuleOp module, func::FuncOp function,
                             const GeneratorOptions &options) {
  std::string name = function.getSymName().str();
  cpu::GeneratorOptions generator;
  generator.numerics = options.numerics;
  function.setSymName(name + "_chunk");
  auto info = cpu::generateKernel(module, function, makeThreadTarget(options), generator);
  function.setSymName(name);
  if (failed(info))
    return failure();
  auto chunk = module.lookupSymbol<func::FuncOp>(info->name);
  int64_t workspace = info->workspaceBytesPerWorker;
  chunk->removeAttr(cpu::kKernelAttribute);
  kernel.reserveScratch(workspace * info->chunks);
  kernel.launchThreads(
      info->chunks, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
        SmallVector<Value> operands(arguments.buffers);
        if (workspace)
          operands.push_back(memref::ViewOp::create(b, MemRefType::get({workspace}, b.getI8Type()),
                                                    arguments.scratch, b.mul(i, workspace), ValueRange{}));
        operands.push_back(i);
        func::CallOp::create(b, chunk, operands);
      });
  return success();
}

} // namespace ortc::gpu
