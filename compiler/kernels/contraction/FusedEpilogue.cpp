// The elementwise operations as a loop program whose lanes follow those of the result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/contraction/FusedEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ortc::kernels {

std::shared_ptr<FusedEpilogue> FusedEpilogue::analyze(ValueRange inputs, ValueRange outputs, Value result,
                                                      std::string &reason) {
  auto analysis = std::make_shared<FusedEpilogue>();
  analysis->element = getElementTypeOrSelf(result.getType());
  int64_t total = cast<RankedTensorType>(result.getType()).getNumElements();
  unsigned resultBuffer = inputs.size();
  View &view = analysis->view;
  if (outputs.size() == 1 && outputs[0] == result) {
    view.operands.push_back({resultBuffer, 0});
    if (total > 1)
      view.digits.push_back({1, total, {1}});
    analysis->outputs.push_back({firstOperand, 0});
    return analysis;
  }
  analysis->computes = true;
  SmallVector<Value> all(inputs);
  all.push_back(result);
  auto program = analyzeLoops(all, outputs, reason);
  if (!program)
    return nullptr;
  analysis->program = *program;
  LoopProgram &p = analysis->program;
  reason = "what follows is not elementwise on the result";
  if (!p.reductions.empty() || p.passes != 1)
    return nullptr;

  const IndexExpr *position = nullptr;
  for (auto [number, node] : llvm::enumerate(p.nodes)) {
    bool isSplat = node.kind == LoopNode::constant &&
                   isa<SplatElementsAttr>(cast<arith::ConstantOp>(node.op).getValue());
    bool isAffineLoad = node.kind == LoopNode::load && node.at.dynamic.empty();
    if (!isSplat && !isAffineLoad && node.kind != LoopNode::operation)
      return nullptr;
    if (node.kind != LoopNode::load || node.buffer != resultBuffer)
      continue;
    if (position && !(*position == node.at))
      return nullptr;
    position = &node.at;
    analysis->resultNodes.insert(number);
  }
  if (!position || !readDigits(p, *position, total, view.digits))
    return nullptr;
  // Outputs first: the first operand decides about the direction of vectors.
  for (const LoopOutput &output : p.outputs) {
    if (output.perRow || !output.at.dynamic.empty() ||
        cast<RankedTensorType>(p.buffers[output.buffer]).getNumElements() != total)
      return nullptr;
    analysis->outputs.push_back({firstOperand + view.operands.size(), output.node});
    // The result stands between inputs and outputs and is no buffer of the kernel.
    addOperand(view, p, *position, output.at, output.buffer - 1);
  }
  for (auto [number, node] : llvm::enumerate(p.nodes)) {
    if (node.kind != LoopNode::load || analysis->resultNodes.contains(number))
      continue;
    analysis->loadOperand[number] = firstOperand + view.operands.size();
    addOperand(view, p, *position, node.at, node.buffer);
  }
  analysis->flops = p.flops();
  // Everything is computed on lanes, whichever dim they lie along. A single number is a lane of one.
  p.laneDim = 0;
  if (p.dims.empty()) {
    p.dims.emplace_back();
    for (LoopNode &node : p.nodes)
      node.at.scales.assign(1, 0);
    for (LoopOutput &output : p.outputs)
      output.at.scales.assign(1, 0);
  }
  for (LoopNode &node : p.nodes)
    node.dims = node.kind == LoopNode::constant ? 0 : 1;
  for (LoopNode &node : p.nodes)
    if (node.kind == LoopNode::operation)
      node.dims = llvm::any_of(node.operands, [&](unsigned operand) { return p.nodes[operand].dims != 0; });
  return analysis;
}

SmallVector<int64_t> FusedEpilogue::inPlacePairs(ArrayRef<unsigned> operands) const {
  SmallVector<int64_t> pairs;
  if (!computes)
    return pairs;
  SmallVector<int64_t> all = program.inPlacePairs();
  // The result of the operation in front stands behind the inputs and is no buffer of the kernel.
  int64_t inputs = program.buffers.size() - program.outputs.size() - 1;
  for (size_t i = 0; i < all.size(); i += 2)
    if (all[i] < inputs && !llvm::is_contained(operands, all[i]))
      pairs.append({all[i], all[i + 1]});
  return pairs;
}

bool FusedEpilogue::isLong() const {
  int64_t cost = 0;
  for (const LoopNode &node : program.nodes)
    cost += node.kind == LoopNode::operation ? node.cost : 0;
  return cost > 12;
}

} // namespace ortc::kernels
