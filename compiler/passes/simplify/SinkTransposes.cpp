// Move transposes down until they cancel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Always downwards, so that no two patterns can undo each other: f(transpose(x)) becomes transpose(f(x)), and
// transpose(transpose(x)) folds. Elementwise operations are moved as a whole when every operand is either transposed
// by the same permutation or can be permuted for free. What this does not do: weigh the cost of permuting an operand
// that is not transposed; such an operation keeps its transposes.
#include "compiler/passes/simplify/SinkTransposes.h"

#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_SINKTRANSPOSESPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// Transposes of a function that are moved from below.
static constexpr size_t kMaxFromBelow = 500;

/// Whether permuting `value` costs nothing: a splat, or a broadcast of fewer elements.
static bool isFreelyPermutable(Value value) {
  if (DenseElementsAttr elements; matchPattern(value, m_Constant(&elements)))
    return elements.isSplat();
  return value.getDefiningOp<nn::BroadcastOp>() != nullptr;
}

namespace {

/// f(transpose(x), transpose(y), free) -> transpose(f(x, y, permuted free)) for arith, math and what passes values on.
struct SinkThroughElementwise : RewritePattern {
  SinkThroughElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool isArithmetic = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
    if ((!isArithmetic && !isa<nn::DetachOp, nn::StraightThroughOp>(op)) || op->getNumResults() != 1 ||
        op->getNumOperands() == 0 || op->getNumRegions() != 0)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    nn::TransposeOp first;
    for (Value operand : op->getOperands()) {
      auto transpose = operand.getDefiningOp<nn::TransposeOp>();
      // Such a transpose goes away by itself; moved through here it would appear on the other operand, and come back.
      if (transpose && isFreelyPermutable(transpose.getInput()))
        return rewriter.notifyMatchFailure(op, "the transpose of an operand costs nothing");
      if (transpose && (!first || first.getPermutation() == transpose.getPermutation()))
        first = transpose;
      else if (transpose || !isFreelyPermutable(operand))
        return rewriter.notifyMatchFailure(op, "an operand has another layout");
    }
    if (!first)
      return rewriter.notifyMatchFailure(op, "no operand is transposed");

    ArrayRef<int64_t> permutation = first.getPermutation();
    auto inverse = nn::invertPermutation(permutation);
    auto permuted = [&](Type type) {
      auto tensor = cast<RankedTensorType>(type);
      return RankedTensorType::get(nn::permuteShape(tensor.getShape(), inverse), tensor.getElementType());
    };
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (auto transpose = operand.getDefiningOp<nn::TransposeOp>())
        operands.push_back(transpose.getInput());
      else
        operands.push_back(
            nn::TransposeOp::create(rewriter, op->getLoc(), permuted(operand.getType()), operand, inverse));
    }
    OperationState state(op->getLoc(), op->getName(), operands, permuted(op->getResult(0).getType()),
                         op->getAttrs());
    Operation *moved = rewriter.create(state);
    rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op->getResult(0).getType(), moved->getResult(0),
                                                 permutation);
    return success();
  }
};

} // namespace

/// transpose(broadcast(x)) -> broadcast(transpose(x)).
static LogicalResult pullThroughBroadcast(nn::TransposeOp op, PatternRewriter &rewriter) {
  auto broadcast = op.getInput().getDefiningOp<nn::BroadcastOp>();
  if (!broadcast)
    return rewriter.notifyMatchFailure(op, "input is no broadcast");
  auto inverse = nn::invertPermutation(op.getPermutation());
  // Input dimension i lands at inverse[dimensions[i]]; broadcast wants increasing order.
  SmallVector<std::pair<int64_t, int64_t>> landing;
  for (auto [i, dim] : llvm::enumerate(broadcast.getDimensions()))
    landing.emplace_back(inverse[dim], i);
  llvm::sort(landing);
  SmallVector<int64_t> dimensions, order;
  for (auto [dim, i] : landing) {
    dimensions.push_back(dim);
    order.push_back(i);
  }
  auto inputType = cast<RankedTensorType>(broadcast.getInput().getType());
  auto innerType =
      RankedTensorType::get(nn::permuteShape(inputType.getShape(), order), inputType.getElementType());
  Value inner = rewriter.createOrFold<nn::TransposeOp>(op.getLoc(), innerType, broadcast.getInput(), order);
  rewriter.replaceOpWithNewOp<nn::BroadcastOp>(op, op.getType(), inner, dimensions);
  return success();
}

/// A transpose that moves no two dimensions larger than 1 past each other keeps the order of elements.
static LogicalResult turnIntoReshape(nn::TransposeOp op, PatternRewriter &rewriter) {
  auto shape = cast<RankedTensorType>(op.getInput().getType()).getShape();
  int64_t previous = -1;
  for (int64_t from : op.getPermutation()) {
    if (shape[from] == 1)
      continue;
    if (from < previous)
      return rewriter.notifyMatchFailure(op, "elements change places");
    previous = from;
  }
  rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), op.getInput());
  return success();
}

namespace {

struct SinkTransposesPass : impl::SinkTransposesPassBase<SinkTransposesPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkThroughElementwise>(&getContext());
    patterns.add(pullThroughBroadcast);
    patterns.add(turnIntoReshape);
    populateSinkThroughOps(patterns);
    nn::BroadcastOp::getCanonicalizationPatterns(patterns, &getContext());
    // From below, every transpose sinks through all that is below it before the one above it arrives: more
    // free operands are met on the way, but the time is quadratic.
    size_t transposes = 0;
    getOperation()->walk([&](nn::TransposeOp) { ++transposes; });
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(transposes > kMaxFromBelow);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::simplify
