// The kernel of a table of sums that only a loop reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/loop/FusedScatter.h"

#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/emit/ElementEmitter.h"

#include <numeric>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

KernelInfo emitFusedScatter(const FusedScatter &form, LoopBuilder &b, ModuleOp module,
                            ArrayRef<KernelBuffer> buffers, KernelInfo info, const Target &target,
                            Numerics numerics) {
  const ScatterPlan &plan = form.plan;
  const LoopProgram &program = form.program;
  Type element = form.element;
  LoopPlan loops = planLoops(program, target);
  // Whole rows and whole groups of vectors.
  int64_t group = loops.width * loops.unroll, step = group / std::gcd(group, plan.columns);
  ScatterPlan scatter = plan;
  scatter.blockRows = std::max(scatter.blockRows / step, int64_t(1)) * step;
  loops.block = scatter.blockRows * plan.columns;
  loops.blocks = loops.units = loops.chunks = scatter.rowBlocks();
  loops.unitsPerChunk = 1;
  loops.tileDim = -1;

  Type stored = bufferType(element);
  info.workspaceBytesPerWorker = loops.block * stored.getIntOrFloatBitWidth() / 8;
  info.chunks = loops.chunks;
  KernelFunction kernel = createKernelFunction(b, module, info, buffers);
  Value workspace = kernel.workspaceView(b, b.getLoc(), 0, stored, loops.block);
  kernel.buffers.insert(kernel.buffers.begin() + form.sums(), workspace);
  BlockBuffer source{form.sums(), [&](Value block) {
                       Value zero = b.index(0), row = b.mul(block, scatter.blockRows);
                       emitScatterBlock(b, scatter, element, kernel.buffers[form.indices],
                                        kernel.buffers[form.updates], {zero, row, zero, workspace, zero},
                                        target);
                     }};
  emitLoops(b, program, loops, kernel, mathOptionsOf(target, numerics), &source);
  return info;
}

} // namespace ortc::cpu
