// Work on rows before they are gathered.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f(gather(table)) becomes gather(f(table)) where f treats every row for itself: a small vocabulary in front
// of a layer is multiplied once a word, not once a token. Only tables of vectors, gathered along their rows;
// chains of such operations move one after another.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/PackedOps.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_SINKGATHERSPASS
#include "compiler/passes/simplify/Passes.h.inc"

using nn::TensorBuilder;

/// Rows must be gathered so often that working on each once is worth a gather of the results.
static constexpr int64_t kRepeated = 2;

/// Whether `value` is a table of which a step updates the gathered rows.
static bool isSparse(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  auto symbol = function
                    ? function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kTensor)
                    : nullptr;
  Operation *tensor = symbol ? SymbolTable::lookupNearestSymbolFrom(function, symbol) : nullptr;
  return tensor && tensor->hasAttr(train::kSparse);
}

/// The gather that `value` is with its rows in another order or shape, if the table is small; null for
/// others. `movement` has the transposes and reshapes between, the last one first.
static nn::GatherOp findGather(Value value, SmallVectorImpl<Operation *> &movement) {
  nn::GatherOp gather;
  while (!(gather = value.getDefiningOp<nn::GatherOp>())) {
    Operation *op = value.getDefiningOp();
    int64_t last = TensorBuilder::rankOf(value) - 1;
    if (auto transpose = dyn_cast_or_null<nn::TransposeOp>(op)) {
      if (last < 0 || transpose.getPermutation().back() != last)
        return nullptr;
    } else if (auto reshape = dyn_cast_or_null<nn::ReshapeOp>(op)) {
      auto from = TensorBuilder::shapeOf(reshape.getInput());
      if (last < 0 || from.empty() || from.back() != TensorBuilder::shapeOf(value).back())
        return nullptr;
    } else {
      return nullptr;
    }
    movement.push_back(op);
    value = op->getOperand(0);
  }
  if (nn::findUnpack(gather.getInput())) // a table that is never there as a whole
    return nullptr;
  if (isSparse(gather.getInput())) // its gradient would be a product's
    return nullptr;
  auto table = TensorBuilder::shapeOf(gather.getInput());
  bool isSmall = table.size() == 2 && gather.getAxis() == 0 &&
                 TensorBuilder::typeOf(gather.getIndices()).getNumElements() >= kRepeated * table[0];
  return isSmall ? gather : nullptr;
}

/// The indices with their dimensions where `movement` brings those of the rows.
static Value moveIndices(TensorBuilder &b, nn::GatherOp gather, ArrayRef<Operation *> movement) {
  Value indices = gather.getIndices();
  for (Operation *op : llvm::reverse(movement)) {
    if (auto transpose = dyn_cast<nn::TransposeOp>(op))
      indices = b.transpose(indices, transpose.getPermutation().drop_back());
    else
      indices = b.reshape(indices, TensorBuilder::shapeOf(op->getResult(0)).drop_back());
  }
  return indices;
}

static Value gatherRows(TensorBuilder &b, Value table, Value indices, int64_t axis, Type type) {
  return nn::GatherOp::create(b, type, table, indices, axis);
}

/// Whether the derivative is finite wherever the operands are: the gradient of a row that nobody gathers is 0 times it.
static bool hasFiniteDerivative(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp,
             arith::CmpFOp, arith::SelectOp, math::AbsFOp, math::TanhOp, math::ErfOp, math::SinOp,
             math::CosOp>(op);
}

static LogicalResult sinkBelowDot(nn::DotOp op, PatternRewriter &rewriter) {
  for (bool isLeft : {true, false}) {
    Value operand = isLeft ? op.getLhs() : op.getRhs();
    ArrayRef<int64_t> contract = isLeft ? op.getLhsContract() : op.getRhsContract();
    SmallVector<Operation *> movement;
    nn::GatherOp gather = findGather(operand, movement);
    if (!gather || !op.getLhsBatch().empty() ||
        contract != ArrayRef<int64_t>{TensorBuilder::rankOf(operand) - 1})
      continue;
    TensorBuilder b(op.getLoc(), op);
    b.setListener(rewriter.getListener());
    Value table = gather.getInput();
    Value product = isLeft ? b.dot(table, op.getRhs(), {}, {}, {1}, op.getRhsContract(), op.getExact())
                           : b.dot(op.getLhs(), table, {}, {}, op.getLhsContract(), {1}, op.getExact());
    int64_t axis = isLeft ? 0 : TensorBuilder::rankOf(op.getLhs()) - 1;
    rewriter.replaceOp(op, gatherRows(b, product, moveIndices(b, gather, movement), axis, op.getType()));
    return success();
  }
  return rewriter.notifyMatchFailure(op, "it multiplies no gathered rows of a small table");
}

namespace {

/// Elementwise arithmetic of gathered rows with what is the same for all of them.
struct SinkBelowElementwise : RewritePattern {
  SinkBelowElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool isFloat = op->getNumResults() == 1 && isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumResults() != 1 ||
        op->getNumOperands() == 0)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    if (isFloat && !hasFiniteDerivative(op))
      return rewriter.notifyMatchFailure(op, "infinite derivatives, perhaps");
    nn::GatherOp gather;
    SmallVector<Operation *> movement;
    unsigned which = 0;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (isSameForAllRows(operand))
        continue;
      movement.clear();
      which = i;
      if (gather || !(gather = findGather(operand, movement)))
        return rewriter.notifyMatchFailure(op, "more than gathered rows of a small table");
    }
    if (!gather)
      return rewriter.notifyMatchFailure(op, "no gathered rows");
    TensorBuilder b(op->getLoc(), op);
    b.setListener(rewriter.getListener());
    auto rows = TensorBuilder::shapeOf(gather.getInput());
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(i == which ? gather.getInput() : onTable(b, operand, rows));
    auto type = TensorBuilder::typeOf(op->getResult(0));
    OperationState state(op->getLoc(), op->getName(), operands,
                         RankedTensorType::get(rows, type.getElementType()), op->getAttrs());
    Value onRows = b.create(state)->getResult(0);
    rewriter.replaceOp(op, gatherRows(b, onRows, moveIndices(b, gather, movement), 0, type));
    return success();
  }

private:
  static bool isSplat(Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    return constant && isa<SplatElementsAttr>(constant.getValue());
  }

  static bool isSameForAllRows(Value value) {
    if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>()) {
      int64_t last = TensorBuilder::rankOf(value) - 1;
      return llvm::all_of(broadcast.getDimensions(), [&](int64_t dim) { return dim == last; });
    }
    return isSplat(value);
  }

  static Value onTable(TensorBuilder &b, Value value, ArrayRef<int64_t> shape) {
    if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
      auto element = cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
      auto type = RankedTensorType::get(shape, TensorBuilder::elementOf(value));
      return arith::ConstantOp::create(b, SplatElementsAttr::get(type, element));
    }
    auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
    SmallVector<int64_t> dimensions(broadcast.getDimensions().size(), 1);
    return b.broadcast(broadcast.getInput(), shape, dimensions);
  }
};

struct SinkGathersPass : impl::SinkGathersPassBase<SinkGathersPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(sinkBelowDot);
    patterns.add<SinkBelowElementwise>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::simplify
