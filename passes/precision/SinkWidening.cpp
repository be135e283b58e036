// Move narrow tensors, not what they are extended to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/precision/Passes.h"

#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_SINKWIDENINGPASS
#include "passes/precision/Passes.h.inc"

namespace {

/// move(extend(x)) -> extend(move(x)).
template <typename MovementOp> struct SinkWidening : OpRewritePattern<MovementOp> {
  using OpRewritePattern<MovementOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(MovementOp op, PatternRewriter &rewriter) const override {
    auto extended = op.getInput().template getDefiningOp<arith::ExtFOp>();
    if (!extended)
      return rewriter.notifyMatchFailure(op, "the input is not extended");
    auto narrow = cast<RankedTensorType>(extended.getIn().getType());
    if (narrow.getElementTypeBitWidth() != 16)
      return rewriter.notifyMatchFailure(op, "the input is not extended from f16 or bf16");
    auto moved = cast<MovementOp>(rewriter.clone(*op));
    moved.getInputMutable().assign(extended.getIn());
    moved->getResult(0).setType(cast<RankedTensorType>(op.getType()).clone(narrow.getElementType()));
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), moved->getResult(0));
    return success();
  }
};

struct SinkWideningPass : impl::SinkWideningPassBase<SinkWideningPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkWidening<nn::TransposeOp>, SinkWidening<nn::ReshapeOp>, SinkWidening<nn::BroadcastOp>,
                 SinkWidening<nn::SliceOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::precision
