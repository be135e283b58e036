// Rows that loops take from tables themselves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over gathered rows takes the indices instead, and gathers what it needs: the rows are not written in
// front of it and read again. Only where nothing else reads them, and where elementwise work does in the
// loop, which reads rows of a table as well as others.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/TensorBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_GATHERINLOOPSPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// Whether elementwise operations read `value`, or slices of it.
static bool isReadElementwise(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<nn::SliceOp>(user) || isa<arith::ArithDialect, math::MathDialect>(user->getDialect());
  });
}

/// Gathers in the body of `scan` what its sequence `index` has as slices.
static void gatherInside(nn::ScanOp scan, unsigned index) {
  auto gather = scan.getSequences()[index].getDefiningOp<nn::GatherOp>();
  BlockArgument slice = cast<BlockArgument>(scan.getSliceArgs()[index]);
  if (!gather || gather.getAxis() != 0 || !gather->hasOneUse() || !isReadElementwise(slice) ||
      nn::TensorBuilder::rankOf(gather.getIndices()) == 0)
    return;
  auto indices = nn::TensorBuilder::typeOf(gather.getIndices());
  Value table = scan.addInvariant(gather.getInput());
  auto type = slice.getType();
  slice.setType(RankedTensorType::get(indices.getShape().drop_front(), indices.getElementType()));
  scan.getSequencesMutable()[index].set(gather.getIndices());
  OpBuilder builder = OpBuilder::atBlockBegin(&scan.getBlock());
  auto inside = nn::GatherOp::create(builder, gather.getLoc(), type, table, slice, 0);
  slice.replaceAllUsesExcept(inside, inside);
  gather.erase();
}

namespace {

struct GatherInLoopsPass : impl::GatherInLoopsPassBase<GatherInLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<nn::ScanOp> scans;
    getOperation()->walk([&](nn::ScanOp scan) { scans.push_back(scan); });
    for (nn::ScanOp scan : scans)
      for (unsigned i = 0; i < scan.getSequences().size(); ++i)
        gatherInside(scan, i);
  }
};

} // namespace
} // namespace ortc::simplify
