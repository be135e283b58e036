// Costs and aliasing of loop programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/loop/LoopProgram.h"

#include "compiler/kernels/MathFunction.h"
#include "dialects/nn/Elementwise.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::kernels {

bool isLoopOperation(Operation *op) {
  return nn::isElementwise(op) || isa<arith::ConstantOp, nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp,
                                      nn::SliceOp, nn::PadOp, nn::ConcatOp, nn::ReverseOp, nn::IotaOp,
                                      nn::RandomOp, nn::GatherOp, nn::GatherElementsOp, nn::ReduceOp>(op);
}

int64_t elementwiseCost(Operation *op) {
  if (auto function = mathFunctionOf(op)) {
    switch (*function) {
    case MathFunction::Sqrt:
    case MathFunction::Floor:
    case MathFunction::Ceil:
    case MathFunction::Trunc:
    case MathFunction::Round:
    case MathFunction::RoundEven:
      return 4;
    case MathFunction::Rsqrt:
      return 6;
    case MathFunction::Pow:
      return 60;
    default:
      return 20;
    }
  }
  if (isa<arith::DivFOp>(op))
    return 4;
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp>(op))
    return 12;
  auto element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF16() || element.isBF16() ? 3 : 1;
}

int64_t LoopProgram::elements(bool reduced) const {
  int64_t count = 1;
  for (const LoopDim &dim : dims)
    if (dim.reduced == reduced)
      count *= dim.size;
  return count;
}

SmallVector<int64_t> LoopProgram::steps() const {
  SmallVector<int64_t> steps(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0; step *= dims[d].size)
    steps[d] = step;
  return steps;
}

SmallVector<unsigned> LoopProgram::rootsOf(unsigned pass) const {
  SmallVector<unsigned> roots;
  for (const LoopReduction &reduction : reductions)
    if (reduction.pass == pass)
      roots.push_back(reduction.input);
  for (const LoopOutput &output : outputs)
    if (!output.perRow && output.pass == pass)
      roots.push_back(output.node);
  return roots;
}

uint64_t LoopProgram::reducedMask() const {
  uint64_t mask = 0;
  for (auto [d, dim] : llvm::enumerate(dims))
    if (dim.reduced)
      mask |= uint64_t(1) << d;
  return mask;
}

bool LoopProgram::isLookup(const LoopNode &node) const {
  if (node.kind != LoopNode::load || node.at.constant != 0 || node.at.dynamic.size() != 1 ||
      node.at.dynamic.front().scale != 1 ||
      llvm::any_of(node.at.scales, [](int64_t scale) { return scale != 0; }))
    return false;
  auto table = cast<RankedTensorType>(buffers[node.buffer]);
  int64_t size = table.getNumElements();
  return table.getRank() == 1 && (size == 16 || size == 32 || size == 128 || size == 256) &&
         table.getElementType().getIntOrFloatBitWidth() == 32;
}

int64_t LoopProgram::costPerPoint() const {
  int64_t cost = 1;
  uint64_t all = (uint64_t(1) << dims.size()) - 1;
  for (const LoopNode &node : nodes)
    if (laneDim < 0 || (node.dims & (uint64_t(1) << laneDim)) || node.dims == all)
      cost += node.cost;
  return cost;
}

/// Floating-point operations of one element.
static int64_t flopsOf(Operation *op) {
  if (isa<math::AbsFOp, math::CopySignOp>(op))
    return 0;
  return mathFunctionOf(op) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::RemFOp>(op);
}

int64_t LoopProgram::flops() const {
  auto points = [&](uint64_t mask) {
    int64_t count = 1;
    for (auto [d, dim] : llvm::enumerate(dims))
      if (mask >> d & 1)
        count *= dim.size;
    return count;
  };
  int64_t total = 0;
  for (const LoopNode &node : nodes)
    if (node.kind == LoopNode::operation)
      total += flopsOf(node.op) * points(node.dims);
  for (const LoopReduction &reduction : reductions)
    if (isa<FloatType>(reduction.element) &&
        (reduction.kind == nn::ReduceKind::sum || reduction.kind == nn::ReduceKind::prod))
      total += elements(false) * elements(true);
  return total;
}

KernelWork LoopProgram::work() const {
  KernelWork work;
  work.flops = flops();
  work.cost = elements(false) * elements(true) * costPerPoint();
  return work;
}

static int64_t storedBytes(Type type) { return (getElementTypeOrSelf(type).getIntOrFloatBitWidth() + 7) / 8; }

SmallVector<int64_t> LoopProgram::inPlacePairs() const {
  // The passes that reach each load.
  std::vector<uint64_t> reached(nodes.size(), 0);
  auto mark = [&](unsigned root, unsigned pass) { reached[root] |= uint64_t(1) << pass; };
  for (const LoopReduction &reduction : reductions)
    mark(reduction.input, reduction.pass);
  for (const LoopOutput &output : outputs)
    mark(output.node, output.perRow ? passes : output.pass);
  for (size_t i = nodes.size(); i-- > 0;) {
    for (unsigned operand : nodes[i].operands)
      reached[operand] |= reached[i];
    for (const IndexExpr::Dynamic &term : nodes[i].at.dynamic)
      reached[term.node] |= reached[i];
  }
  SmallVector<int64_t> pairs;
  int64_t inputs = buffers.size() - outputs.size();
  for (int64_t input = 0; input < inputs; ++input) {
    auto type = cast<RankedTensorType>(buffers[input]);
    for (auto [o, output] : llvm::enumerate(outputs)) {
      auto to = cast<RankedTensorType>(buffers[output.buffer]);
      if (to.getNumElements() != type.getNumElements() || storedBytes(to) != storedBytes(type))
        continue;
      bool allowed = llvm::all_of(llvm::seq<size_t>(0, nodes.size()), [&](size_t n) {
        const LoopNode &node = nodes[n];
        if (node.kind != LoopNode::load || node.buffer != input || reached[n] == 0)
          return true;
        unsigned last = 63 - llvm::countl_zero(reached[n]);
        unsigned stored = output.perRow ? passes : output.pass;
        return node.at == output.at && last <= stored;
      });
      // A row's loads of what another row has stored would be wrong, which equal expressions exclude.
      if (allowed)
        pairs.append({input, static_cast<int64_t>(o)});
    }
  }
  return pairs;
}

std::optional<Widening> findWidening(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::ExtFOp, arith::SIToFPOp, arith::UIToFPOp>(op) ||
      !getElementTypeOrSelf(value.getType()).isF32())
    return std::nullopt;
  Value from = op->getOperand(0);
  Type type = getElementTypeOrSelf(from.getType());
  unsigned width = type.getIntOrFloatBitWidth();
  if (width != 8 && width != 16)
    return std::nullopt;
  if (type.isInteger())
    type = IntegerType::get(type.getContext(), width,
                            isa<arith::SIToFPOp>(op) ? IntegerType::Signed : IntegerType::Unsigned);
  return Widening{from, type};
}

Operation *findOnly(ValueRange inputs, ValueRange outputs, llvm::function_ref<bool(Operation *)> kind) {
  llvm::DenseSet<Value> seen(inputs.begin(), inputs.end());
  SmallVector<Value> stack(outputs);
  Operation *found = nullptr;
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    if (kind(op)) {
      if (found && found != op)
        return nullptr;
      found = op;
    }
    stack.append(op->operand_begin(), op->operand_end());
  }
  return found;
}

} // namespace ortc::kernels
