//===- FusedScatter.cpp - a table of sums that only a loop reads -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/loop/FusedScatter.h"

#include "compiler/codegen/loop/ElementEmitter.h"
#include "compiler/codegen/loop/LoopNest.h"

#include <numeric>

using namespace mlir;

namespace ortc::codegen {

std::optional<FusedScatter> FusedScatter::analyze(ValueRange inputs, ValueRange outputs,
                                                  std::string &reason) {
  auto op = dyn_cast_or_null<nn::ScatterAddOp>(findOnly(inputs, outputs, llvm::IsaPred<nn::ScatterAddOp>));
  reason = "there is not exactly one scatter_add of inputs, or its sums are an output";
  if (!op || !llvm::is_contained(inputs, op.getIndices()) || !llvm::is_contained(inputs, op.getUpdates()) ||
      llvm::is_contained(outputs, op.getResult()))
    return std::nullopt;
  reason = "the table is small";
  ScatterPlan plan(op);
  if (plan.outer != 1 || !plan.cutsRows())
    return std::nullopt;

  SmallVector<Value> all(inputs);
  all.push_back(op.getResult());
  auto program = analyzeLoops(all, outputs, reason);
  if (!program)
    return std::nullopt;
  reason = "what follows is not elementwise on the table";
  if (!program->reductions.empty() || program->dims.size() != 1 ||
      program->dims[0].size != plan.rows * plan.columns)
    return std::nullopt;
  auto isElement = [](const IndexExpr &at) {
    return at.constant == 0 && at.scales[0] == 1 && at.dynamic.empty();
  };
  for (const LoopNode &node : program->nodes)
    if (node.kind == LoopNode::load && node.buffer == inputs.size() && !isElement(node.at))
      return std::nullopt;
  auto numberOf = [&](Value input) {
    return static_cast<unsigned>(llvm::find(inputs, input) - inputs.begin());
  };
  return FusedScatter{plan, getElementTypeOrSelf(op.getType()), numberOf(op.getIndices()),
                      numberOf(op.getUpdates()), std::move(*program)};
}

SmallVector<int64_t> FusedScatter::inPlacePairs() const {
  SmallVector<int64_t> all = program.inPlacePairs(), pairs;
  for (size_t i = 0; i < all.size(); i += 2) {
    // Every block reads from all over what is scattered; the sums are no buffer.
    if (all[i] != indices && all[i] != updates && all[i] != sums())
      pairs.append({all[i], all[i + 1]});
  }
  return pairs;
}

KernelInfo FusedScatter::emit(LoopBuilder &b, ModuleOp module, ArrayRef<KernelBuffer> buffers,
                              KernelInfo info, const Target &target, Numerics numerics) const {
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
  info.flops = program.flops() + (isa<FloatType>(element) ? plan.count * plan.columns : 0);
  info.cost = program.elements(false) * program.costPerPoint() + scatter.work() * loops.units;
  KernelFunction kernel = createKernelFunction(b, module, info, buffers);
  Value workspace = kernel.workspaceView(b, b.getLoc(), 0, stored, loops.block);
  kernel.buffers.insert(kernel.buffers.begin() + sums(), workspace);
  BlockBuffer source{sums(), [&](Value block) {
                       Value zero = b.index(0), row = b.mul(block, scatter.blockRows);
                       emitScatterBlock(b, scatter, element, kernel.buffers[indices], kernel.buffers[updates],
                                        {zero, row, zero, workspace, zero}, target);
                     }};
  emitLoops(b, program, loops, kernel, MathOptions::of(target, numerics), &source);
  return info;
}

} // namespace ortc::codegen
