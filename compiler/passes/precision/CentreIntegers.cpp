// Subtract zero points before integers become floating point.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/precision/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_CENTREINTEGERSPASS
#include "compiler/passes/precision/Passes.h.inc"

namespace {

/// convert(q) - zero -> convert(q - zero).
template <typename ConvertOp> struct CentreIntegers : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SubFOp op, PatternRewriter &rewriter) const override {
    auto converted = op.getLhs().getDefiningOp<ConvertOp>();
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!converted || !type || !type.getElementType().isF32())
      return rewriter.notifyMatchFailure(op, "its operand is not made of integers");
    constexpr bool isSigned = std::is_same_v<ConvertOp, arith::SIToFPOp>;
    Value codes = converted.getIn();
    SplatElementsAttr splat;
    if (!getElementTypeOrSelf(codes.getType()).isInteger(8) || !matchPattern(op.getRhs(), m_Constant(&splat)))
      return rewriter.notifyMatchFailure(op, "it is not one number subtracted from 8-bit integers");
    double number = splat.getSplatValue<APFloat>().convertToDouble();
    int64_t lowest = isSigned ? -128 : 0, highest = lowest + 255;
    if (number != std::floor(number) || number < lowest || number > highest)
      return rewriter.notifyMatchFailure(op, "the number is no zero point");
    int64_t offset = static_cast<int64_t>(number);
    lowest -= offset, highest -= offset;
    bool fitsUnsigned = lowest >= 0, fits = fitsUnsigned || (lowest >= -128 && highest <= 127);
    if (!fits) {
      Type wide = type.clone(rewriter.getI16Type());
      codes = isSigned ? arith::ExtSIOp::create(rewriter, op.getLoc(), wide, codes).getResult()
                       : arith::ExtUIOp::create(rewriter, op.getLoc(), wide, codes).getResult();
    }
    auto integers = cast<RankedTensorType>(codes.getType());
    APInt amount(integers.getElementTypeBitWidth(), offset, /*isSigned=*/true, /*implicitTrunc=*/true);
    Value constant =
        arith::ConstantOp::create(rewriter, op.getLoc(), DenseElementsAttr::get(integers, amount));
    Value centred = arith::SubIOp::create(rewriter, op.getLoc(), codes, constant);
    if (fitsUnsigned)
      rewriter.replaceOpWithNewOp<arith::UIToFPOp>(op, type, centred);
    else
      rewriter.replaceOpWithNewOp<arith::SIToFPOp>(op, type, centred);
    return success();
  }
};

struct CentreIntegersPass : impl::CentreIntegersPassBase<CentreIntegersPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<CentreIntegers<arith::SIToFPOp>, CentreIntegers<arith::UIToFPOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::precision
