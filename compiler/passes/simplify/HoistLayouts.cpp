// What loops multiply with, laid out once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A contraction copies the operand whose vectors it loads to panels, block by block, or reads it in long
// strides. Where that operand is the same in all iterations of a loop it becomes panels in front of it, by
// transposes that are kernels of their own, and the contraction reads them in place. The order of sums is
// that of before. Left operands are read number by number and stay.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/TensorBuilder.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_HOISTLAYOUTSPASS
#include "compiler/passes/simplify/Passes.h.inc"

using nn::TensorBuilder;

/// Columns of a panel, which have to divide all columns: four vectors of the widest registers, or fewer.
static constexpr int64_t kPanels[] = {64, 48, 32};
/// Fewer columns leave vectors empty.
static constexpr int64_t kColumns = 16;
/// Fewer rows are summed along k, where both operands should be contiguous.
static constexpr int64_t kRows = 9;

/// Columns of the panels that an operand of `columns` columns is cut into; all of them where nothing divides them.
static int64_t panelWidth(int64_t columns) {
  for (int64_t width : kPanels)
    if (columns % width == 0)
      return width;
  return columns;
}

/// The operations that make `value` of an invariant of the loop by moving elements, last one first; the
/// invariant's argument, or null.
static BlockArgument findInvariant(nn::ScanOp scan, Value value, SmallVectorImpl<Operation *> &movement) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<nn::SliceOp, nn::TransposeOp, nn::ReshapeOp>(op))
      return nullptr;
    movement.push_back(op);
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  return llvm::is_contained(scan.getInvariantArgs(), argument) ? argument : nullptr;
}

/// Dimensions in the order of `permutation`; as they are where that is their order.
static Value ordered(TensorBuilder &b, Value value, ArrayRef<int64_t> permutation) {
  return llvm::is_sorted(permutation) ? value : b.transpose(value, permutation);
}

static int64_t sizeOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dimensions) {
  int64_t size = 1;
  for (int64_t dimension : dimensions)
    size *= shape[dimension];
  return size;
}

/// Gives `dot` in the body of `scan` panels to read, if its right operand is the same in all iterations.
static void hoistLayout(nn::ScanOp scan, nn::DotOp dot) {
  SmallVector<Operation *> movement;
  BlockArgument argument = findInvariant(scan, dot.getRhs(), movement);
  if (!argument || !dot.getRhsBatch().empty())
    return;
  ArrayRef<int64_t> lhsShape = TensorBuilder::shapeOf(dot.getLhs()),
                    shape = TensorBuilder::shapeOf(dot.getRhs());
  ArrayRef<int64_t> contract = dot.getRhsContract();
  auto free = nn::freeDimensions(shape.size(), {}, contract);
  auto rows = nn::freeDimensions(lhsShape.size(), {}, dot.getLhsContract());
  int64_t columns = sizeOf(shape, free), width = panelWidth(columns);
  SmallVector<int64_t> order(contract);
  order.append(free.begin(), free.end());
  bool isThere = width == columns && movement.empty() && llvm::is_sorted(order);
  if (isThere || sizeOf(lhsShape, rows) < kRows || columns < kColumns)
    return;

  TensorBuilder b(dot.getLoc(), scan);
  IRMapping mapping;
  mapping.map(argument, scan->getOperand(argument.getArgNumber()));
  for (Operation *op : llvm::reverse(movement))
    b.clone(*op, mapping);
  // [k..., n] -> [n / width, k..., width]
  Value panels = ordered(b, mapping.lookup(dot.getRhs()), order);
  SmallVector<int64_t> cut, permutation, panelContract;
  for (size_t i = 0; i < contract.size(); ++i) {
    cut.push_back(shape[contract[i]]);
    permutation.push_back(i);
    panelContract.push_back(i + 1);
  }
  cut.append({columns / width, width});
  permutation.insert(permutation.begin(), contract.size());
  permutation.push_back(contract.size() + 1);
  panels = b.transpose(b.reshape(panels, cut), permutation);

  Value inside = scan.addInvariant(panels);
  b.setInsertionPoint(dot);
  Value product = b.dot(dot.getLhs(), inside, {}, {}, dot.getLhsContract(), panelContract);
  dot.getResult().replaceAllUsesWith(b.reshape(product, TensorBuilder::shapeOf(dot.getResult())));
  dot.erase();
}

namespace {

struct HoistLayoutsPass : impl::HoistLayoutsPassBase<HoistLayoutsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<nn::ScanOp> scans;
    getOperation()->walk([&](nn::ScanOp scan) { scans.push_back(scan); });
    for (nn::ScanOp scan : scans)
      for (nn::DotOp dot : llvm::to_vector(scan.getBlock().getOps<nn::DotOp>()))
        if (scan.getTripCount() > 1 && !scan.getRecompute()) // which are there to save memory
          hoistLayout(scan, dot);
  }
};

} // namespace
} // namespace ortc::simplify
