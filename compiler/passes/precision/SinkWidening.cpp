// Move narrow tensors, not what they are extended to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/precision/Passes.h"

#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_SINKWIDENINGPASS
#include "compiler/passes/precision/Passes.h.inc"

namespace {

static bool extendsNarrow(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::SIToFPOp, arith::UIToFPOp>(op) &&
         llvm::is_contained({8u, 16u},
                            getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth());
}

/// move(extend(x)) -> extend(move(x)).
template <typename MovementOp> struct SinkWidening : OpRewritePattern<MovementOp> {
  using OpRewritePattern<MovementOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(MovementOp op, PatternRewriter &rewriter) const override {
    Operation *extension = op.getInput().getDefiningOp();
    if (!extendsNarrow(extension))
      return rewriter.notifyMatchFailure(op, "the input is not extended from f16, bf16 or a small integer");
    Value narrow = extension->getOperand(0);
    auto moved = cast<MovementOp>(rewriter.clone(*op));
    moved.getInputMutable().assign(narrow);
    moved->getResult(0).setType(
        cast<RankedTensorType>(op.getType()).clone(getElementTypeOrSelf(narrow.getType())));
    Operation *extended = rewriter.clone(*extension);
    extended->setOperand(0, moved->getResult(0));
    extended->getResult(0).setType(op.getType());
    rewriter.replaceOp(op, extended);
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
