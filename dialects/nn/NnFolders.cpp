// Folders and canonicalisers of nn.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Only what cannot change a value: identities, and chains of pure movement.
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::nn {

/// A splat of the same value under the result's shape, or null.
static Attribute resplat(Attribute operand, Type type) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(operand);
  return splat ? splat.resizeSplat(cast<ShapedType>(type)) : Attribute();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  return resplat(adaptor.getInput(), getType());
}

/// broadcast(broadcast(x)) is one broadcast.
static LogicalResult mergeBroadcasts(BroadcastOp op, PatternRewriter &rewriter) {
  auto inner = op.getInput().getDefiningOp<BroadcastOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "input is no broadcast");
  SmallVector<int64_t> dimensions;
  for (int64_t dim : inner.getDimensions())
    dimensions.push_back(op.getDimensions()[dim]);
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(), dimensions);
  return success();
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &results, MLIRContext *context) {
  results.add(mergeBroadcasts);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return elements.reshape(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> merged;
    for (int64_t from : getPermutation())
      merged.push_back(inner.getPermutation()[from]);
    setPermutation(merged);
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return resplat(adaptor.getInput(), getType());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  return resplat(adaptor.getInput(), getType());
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getInputs().size() == 1)
    return getInputs().front();
  // Empty inputs add nothing.
  auto isEmpty = [](Value input) { return cast<RankedTensorType>(input.getType()).getNumElements() == 0; };
  if (isEmpty(getResult()) || llvm::none_of(getInputs(), isEmpty))
    return {};
  SmallVector<Value> inputs(
      llvm::make_filter_range(getInputs(), [&](Value input) { return !isEmpty(input); }));
  getInputsMutable().assign(inputs);
  return getResult();
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  return getAxes().empty() ? OpFoldResult(getInput()) : OpFoldResult();
}

} // namespace ortc::nn
