// Sums of rows at places that indices name, and a table of sums that only a loop reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/scatter/ScatterForm.h"

#include "dialects/nn/NnShapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::kernels {

/// Elements of a block of rows: as many as there are indices to look through for it, but in a second-level cache.
static constexpr int64_t kLeastBlock = 1 << 14, kLargestBlock = 1 << 16;
/// Fewer blocks of rows than these are rather blocks of columns.
static constexpr int64_t kRowBlocks = 8;
/// Columns that are read together at least, and elements that a block of columns should touch.
static constexpr int64_t kColumns = 64, kColumnWork = 1 << 14;

ScatterPlan::ScatterPlan(nn::ScatterAddOp op) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  int64_t axis = op.getAxis();
  outer = nn::elementCount(shape.take_front(axis));
  rows = shape[axis];
  columns = nn::elementCount(shape.drop_front(axis + 1));
  count = cast<RankedTensorType>(op.getIndices().getType()).getNumElements();
  blockRows = std::max<int64_t>(1, std::clamp(count, kLeastBlock, kLargestBlock) / columns);
  blockColumns = columns;
  if (outer * rowBlocks() >= kRowBlocks)
    return;
  blockRows = rows;
  blockColumns = std::min<int64_t>(columns, llvm::alignTo(kColumnWork / (rows + 2 * count) + 1, kColumns));
}

int64_t ScatterPlan::work() const {
  int64_t added = count / rowBlocks() + 1, compared = cutsRows() ? count / 8 : 0;
  return (std::min(blockRows, rows) + 2 * added) * blockColumns + compared;
}

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

KernelWork FusedScatter::work() const {
  KernelWork work;
  work.flops = program.flops() + (isa<FloatType>(element) ? plan.count * plan.columns : 0);
  work.cost = program.elements(false) * program.costPerPoint() + plan.work() * plan.rowBlocks();
  return work;
}

KernelWork workOfScatter(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  KernelWork work;
  if (auto elements = dyn_cast<nn::ScatterElementsOp>(op)) { // copies, then steps through the updates
    work.cost =
        type.getNumElements() + cast<RankedTensorType>(elements.getUpdates().getType()).getNumElements();
    return work;
  }
  if (auto rows = dyn_cast<nn::ScatterOp>(op)) { // in its input's place
    work.cost = cast<RankedTensorType>(rows.getUpdates().getType()).getNumElements();
    return work;
  }
  ScatterPlan plan(cast<nn::ScatterAddOp>(op));
  work.cost = plan.outer * plan.rowBlocks() * plan.columnBlocks() * plan.work();
  if (isa<FloatType>(type.getElementType()))
    work.flops = work.cost;
  return work;
}

} // namespace ortc::kernels
