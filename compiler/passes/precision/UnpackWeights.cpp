// Numbers of packed weights, for some rows or columns at a time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product with a packed weight becomes a loop over panels: some of the columns of its result, for which a part of
// the weight is unpacked. The parts are the weight's rows in one direction (a layer's output), whole groups of its
// columns in the other (the gradient of its input); both read the same integers. The sum of every element stays one
// sum.
#include "compiler/passes/precision/Passes.h"
#include "dialects/nn/PackedOps.h"
#include "dialects/nn/ScanBuilder.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_UNPACKWEIGHTSPASS
#include "compiler/passes/precision/Passes.h.inc"

using nn::TensorBuilder;

/// Unpacked numbers of a panel stay in a core's second cache.
static constexpr int64_t kPanelBytes = int64_t(1) << 20;
/// Small weights are cut, too: the whole of none is unpacked.
static constexpr int64_t kLeastPanels = 4;

namespace {

/// An operand of a product or a gather: what it is the numbers of, moved and rounded.
struct PackedOperand {
  nn::UnpackOp unpack;
  SmallVector<Operation *> steps; ///< from the unpacked rows to the operand, the first one first
  SmallVector<int64_t> axes;      ///< of the unpacked rows, by dimension of the operand

  static std::optional<PackedOperand> find(Value value) {
    PackedOperand found;
    found.unpack = nn::findUnpack(value, &found.steps);
    if (!found.unpack)
      return std::nullopt;
    std::reverse(found.steps.begin(), found.steps.end());
    found.axes = {0, 1};
    for (Operation *step : found.steps)
      if (auto transpose = dyn_cast<nn::TransposeOp>(step); transpose && transpose.getPermutation()[0] == 1)
        std::swap(found.axes[0], found.axes[1]);
    return found;
  }

  /// The same steps with a part of the unpacked rows. `whole` is the axis of which there is all.
  Value replay(TensorBuilder &b, Value value, int64_t whole) const;
};

/// How the free dimension of a weight is cut.
struct Panels {
  int64_t count = 1, units = 1; ///< units of a panel: rows, or groups of columns
  bool fits = true;             ///< all panels are full
};

} // namespace

Value PackedOperand::replay(TensorBuilder &b, Value value, int64_t whole) const {
  SmallVector<int64_t> now{0, 1};
  for (Operation *step : steps) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(step)) {
      value = b.transpose(value, transpose.getPermutation());
      if (transpose.getPermutation()[0] == 1)
        std::swap(now[0], now[1]);
    } else if (isa<nn::SliceOp>(step)) {
      int64_t dimension = now[0] == whole ? 0 : 1;
      value = b.sliceAxis(value, dimension, 0, TensorBuilder::shapeOf(step->getResult(0))[dimension]);
    } else {
      value = b.cast(value, TensorBuilder::elementOf(step->getResult(0)));
    }
  }
  return value;
}

/// `all` units, each of `bytes` unpacked.
static Panels cut(int64_t all, int64_t bytes, bool areRows) {
  Panels panels;
  int64_t most = std::max<int64_t>(kPanelBytes / bytes, 1), wanted = (all + kLeastPanels - 1) / kLeastPanels;
  panels.units = std::min(most, wanted);
  // Columns of a product are computed in vectors.
  for (int64_t multiple : {64, 16})
    if (areRows && panels.units > multiple) {
      panels.units = panels.units / multiple * multiple;
      break;
    }
  for (int64_t units = panels.units; units > panels.units / 2; --units)
    if (all % units == 0 && (!areRows || units % 16 == 0 || panels.units < 16)) {
      panels.units = units;
      break;
    }
  panels.count = (all + panels.units - 1) / panels.units;
  panels.fits = all % panels.units == 0;
  return panels;
}

/// Numbers of units by panel, each divided by `divisor`; beyond the last unit, the last one again.
static Value listUnits(TensorBuilder &b, const Panels &panels, int64_t all, int64_t divisor) {
  SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < panels.count * panels.units; ++i)
    numbers.push_back(std::min(i, all - 1) / divisor);
  auto type = RankedTensorType::get({panels.count, panels.units}, b.getI64Type());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<int64_t>(numbers)));
}

static Value gather(TensorBuilder &b, Value from, Value indices, int64_t axis) {
  SmallVector<int64_t> shape(TensorBuilder::shapeOf(from));
  shape.erase(shape.begin() + axis);
  auto places = TensorBuilder::shapeOf(indices);
  shape.insert(shape.begin() + axis, places.begin(), places.end());
  return nn::GatherOp::create(b, RankedTensorType::get(shape, TensorBuilder::elementOf(from)), from, indices,
                              axis);
}

/// `stacked` [panels, ...] with the panels side by side along `dimension` of the others, of which `size` are wanted.
static Value join(TensorBuilder &b, Value stacked, int64_t dimension, int64_t size) {
  int64_t rank = TensorBuilder::rankOf(stacked);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(1, rank));
  order.insert(order.begin() + dimension, 0);
  Value moved = b.transpose(stacked, order);
  SmallVector<int64_t> shape(TensorBuilder::shapeOf(moved));
  shape[dimension] *= shape[dimension + 1];
  shape.erase(shape.begin() + dimension + 1);
  return b.sliceAxis(b.reshape(moved, shape), dimension, 0, size);
}

/// Writes the product as a loop, if one of its operands is a packed weight.
static bool unpackInDot(nn::DotOp dot, bool isLeft) {
  Value weight = isLeft ? dot.getLhs() : dot.getRhs(), other = isLeft ? dot.getRhs() : dot.getLhs();
  ArrayRef<int64_t> contract = isLeft ? dot.getLhsContract() : dot.getRhsContract();
  auto operand = PackedOperand::find(weight);
  if (!operand || !dot.getLhsBatch().empty() || contract.size() != 1)
    return false;
  nn::UnpackOp unpack = operand->unpack;
  int64_t free = 1 - contract[0], axis = operand->axes[free], size = TensorBuilder::shapeOf(weight)[free];
  auto shape = TensorBuilder::shapeOf(unpack.getData());
  int64_t blocks = TensorBuilder::shapeOf(unpack.getScales())[1], all = shape[axis],
          summed = axis == 0 ? shape[1] * nn::kPackedGroup : shape[0] * nn::kPackedGroup;
  Panels panels = cut(all, summed * int64_t(sizeof(float)), axis == 0);
  // A rounding right behind the product is part of it.
  Value result = dot.getResult();
  auto narrow = result.hasOneUse() ? dyn_cast<arith::TruncFOp>(*result.user_begin()) : arith::TruncFOp();

  TensorBuilder b(dot.getLoc(), dot);
  SmallVector<Value> sequences, invariants{other};
  bool isSequence = axis == 0 && panels.fits;
  if (isSequence) {
    sequences = {b.reshape(unpack.getData(), {panels.count, panels.units, shape[1], shape[2]}),
                 b.reshape(unpack.getScales(), {panels.count, panels.units, blocks})};
  } else {
    sequences = {listUnits(b, panels, all, 1)};
    if (axis == 1)
      sequences.push_back(listUnits(b, panels, all, shape[1] / blocks));
    invariants.append({unpack.getData(), unpack.getScales()});
  }
  auto body = [&](const nn::ScanArguments &now) {
    Value data = now.slices[0], scales = now.slices.back();
    if (!isSequence) {
      data = gather(b, now.invariants[1], now.slices[0], axis);
      scales = gather(b, now.invariants[2], now.slices.back(), axis);
    }
    Value part = operand->replay(b, nn::unpackRows(b, data, scales), 1 - axis), whole = now.invariants[0];
    Value product = b.dot(isLeft ? part : whole, isLeft ? whole : part, {}, {}, dot.getLhsContract(),
                          dot.getRhsContract(), dot.getExact());
    if (narrow)
      product = b.cast(product, TensorBuilder::elementOf(narrow.getResult()));
    return SmallVector<Value>{product};
  };
  auto results = nn::buildScan(b, panels.count, false, {}, sequences, invariants, body);
  Value joined = join(b, results[0], isLeft ? 0 : TensorBuilder::rankOf(result) - 1, size);
  if (narrow) {
    narrow.replaceAllUsesWith(joined);
    narrow->erase();
  } else {
    result.replaceAllUsesWith(joined);
  }
  dot.erase();
  return true;
}

/// Gathers packed rows of a table and unpacks those.
static void unpackInGather(nn::GatherOp op) {
  auto operand = PackedOperand::find(op.getInput());
  if (!operand || op.getAxis() != 0 || operand->axes[0] != 0)
    return;
  TensorBuilder b(op.getLoc(), op);
  Value rows = nn::unpackRows(b, gather(b, operand->unpack.getData(), op.getIndices(), 0),
                              gather(b, operand->unpack.getScales(), op.getIndices(), 0));
  rows = b.sliceAxis(rows, TensorBuilder::rankOf(rows) - 1, 0, TensorBuilder::shapeOf(op.getInput())[1]);
  for (Operation *step : operand->steps)
    if (!isa<nn::TransposeOp, nn::SliceOp>(step))
      rows = b.cast(rows, TensorBuilder::elementOf(step->getResult(0)));
  op.getResult().replaceAllUsesWith(rows);
  op.erase();
}

/// Loops take packed weights, not their numbers.
static void sinkIntoLoop(nn::ScanOp scan) {
  unsigned first = scan.getNumCarried() + scan.getSequences().size();
  for (unsigned i = first, end = scan->getNumOperands(); i < end; ++i) {
    auto operand = PackedOperand::find(scan->getOperand(i));
    if (!operand)
      continue;
    Value data = scan.addInvariant(operand->unpack.getData()),
          scales = scan.addInvariant(operand->unpack.getScales());
    OpBuilder builder = OpBuilder::atBlockBegin(&scan.getBlock());
    IRMapping mapping;
    mapping.map(operand->unpack.getData(), data);
    mapping.map(operand->unpack.getScales(), scales);
    builder.clone(*operand->unpack, mapping);
    for (Operation *step : operand->steps)
      builder.clone(*step, mapping);
    scan.getBlock().getArgument(i).replaceAllUsesWith(mapping.lookup(scan->getOperand(i)));
  }
}

namespace {

struct UnpackWeightsPass : impl::UnpackWeightsPassBase<UnpackWeightsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    bool isAny = false;
    function.walk([&](nn::UnpackOp) { isAny = true; });
    if (!isAny)
      return;
    function.walk<WalkOrder::PreOrder>([](nn::ScanOp scan) { sinkIntoLoop(scan); });
    SmallVector<Operation *> readers;
    function.walk([&](Operation *op) {
      if (isa<nn::DotOp, nn::GatherOp>(op))
        readers.push_back(op);
    });
    for (Operation *op : readers) {
      if (auto gather = dyn_cast<nn::GatherOp>(op))
        unpackInGather(gather);
      else if (auto dot = cast<nn::DotOp>(op); !unpackInDot(dot, /*isLeft=*/false))
        unpackInDot(dot, /*isLeft=*/true);
    }
    // What else reads one, reads all of its numbers.
    SmallVector<Operation *> unpacked;
    function.walk([&](Operation *op) {
      if (op->getNumResults() == 1 && nn::findUnpack(op->getResult(0)))
        unpacked.push_back(op);
    });
    for (Operation *op : llvm::reverse(unpacked)) {
      auto unpack = dyn_cast<nn::UnpackOp>(op);
      if (op->use_empty()) {
        op->erase();
        continue;
      }
      if (!unpack)
        continue;
      TensorBuilder b(unpack.getLoc(), unpack);
      unpack.getResult().replaceAllUsesWith(nn::unpackRows(b, unpack.getData(), unpack.getScales()));
      unpack.erase();
    }
  }
};

} // namespace
} // namespace ortc::precision
