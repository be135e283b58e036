// Move a transpose below one nn operation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/simplify/SinkTransposes.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::simplify {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// `type` seen before a transpose by `permutation`.
static RankedTensorType before(Type type, ArrayRef<int64_t> permutation) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(nn::permuteShape(tensor.getShape(), nn::invertPermutation(permutation)),
                               tensor.getElementType());
}

/// Per-dimension attribute values, moved to where the dimensions were before the transpose.
static SmallVector<int64_t> valuesBefore(ArrayRef<int64_t> values, ArrayRef<int64_t> permutation) {
  return nn::permuteShape(values, nn::invertPermutation(permutation));
}

/// Operations that keep their shape and work along one axis: softmax, log_softmax, cumsum.
template <typename OpType> static LogicalResult sinkAlongAxis(OpType op, PatternRewriter &rewriter) {
  auto transpose = op.getInput().template getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  auto moved = cast<OpType>(rewriter.clone(*op));
  moved.getInputMutable().assign(transpose.getInput());
  moved.setAxis(transpose.getPermutation()[op.getAxis()]);
  moved->getResult(0).setType(transpose.getInput().getType());
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op.getType(), moved->getResult(0),
                                               transpose.getPermutation());
  return success();
}

/// The axes of a reduction before the transpose, sorted, and how the kept dimensions of its result are permuted.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> axesBefore(ArrayRef<int64_t> axes,
                                                                        ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> moved, kept, keptBefore, order;
  for (int64_t axis : axes)
    moved.push_back(permutation[axis]);
  llvm::sort(moved);
  for (int64_t i = 0, rank = permutation.size(); i < rank; ++i) {
    if (!llvm::is_contained(axes, i))
      kept.push_back(permutation[i]);
    if (!llvm::is_contained(moved, i))
      keptBefore.push_back(i);
  }
  for (int64_t dim : kept)
    order.push_back(llvm::find(keptBefore, dim) - keptBefore.begin());
  return {moved, order};
}

static LogicalResult sinkThroughReduce(nn::ReduceOp op, PatternRewriter &rewriter) {
  auto transpose = op.getInput().getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  auto [axes, order] = axesBefore(op.getAxes(), transpose.getPermutation());
  auto type = before(op.getType(), order);
  Value moved = nn::ReduceOp::create(rewriter, op.getLoc(), type, op.getKind(), transpose.getInput(), axes);
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op.getType(), moved, order);
  return success();
}

static LogicalResult sinkThroughMoments(nn::MomentsOp op, PatternRewriter &rewriter) {
  auto transpose = op.getInput().getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  auto [axes, order] = axesBefore(op.getAxes(), transpose.getPermutation());
  auto type = before(op.getMean().getType(), order);
  auto moved = nn::MomentsOp::create(rewriter, op.getLoc(), type, type, transpose.getInput(), axes);
  SmallVector<Value> results;
  for (Value result : moved.getResults())
    results.push_back(nn::TransposeOp::create(rewriter, op.getLoc(), op.getMean().getType(), result, order));
  rewriter.replaceOp(op, results);
  return success();
}

static LogicalResult sinkThroughConcat(nn::ConcatOp op, PatternRewriter &rewriter) {
  SmallVector<Value> inputs;
  ArrayRef<int64_t> permutation;
  for (Value input : op.getInputs()) {
    auto transpose = input.getDefiningOp<nn::TransposeOp>();
    if (!transpose || (!inputs.empty() && transpose.getPermutation() != permutation))
      return rewriter.notifyMatchFailure(op, "inputs are not transposed alike");
    permutation = transpose.getPermutation();
    inputs.push_back(transpose.getInput());
  }
  Value moved = nn::ConcatOp::create(rewriter, op.getLoc(), before(op.getType(), permutation), inputs,
                                     permutation[op.getAxis()]);
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op.getType(), moved, permutation);
  return success();
}

static LogicalResult sinkThroughPad(nn::PadOp op, PatternRewriter &rewriter) {
  auto transpose = op.getInput().getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  auto permutation = transpose.getPermutation();
  Value moved =
      nn::PadOp::create(rewriter, op.getLoc(), before(op.getType(), permutation), transpose.getInput(),
                        op.getValue(), valuesBefore(op.getLow(), permutation),
                        valuesBefore(op.getHigh(), permutation), valuesBefore(op.getInterior(), permutation));
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op.getType(), moved, permutation);
  return success();
}

static LogicalResult sinkThroughSlice(nn::SliceOp op, PatternRewriter &rewriter) {
  auto transpose = op.getInput().getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return rewriter.notifyMatchFailure(op, "input is not transposed");
  auto permutation = transpose.getPermutation();
  Value moved = nn::SliceOp::create(rewriter, op.getLoc(), before(op.getType(), permutation),
                                    transpose.getInput(), valuesBefore(op.getStarts(), permutation),
                                    valuesBefore(op.getStrides(), permutation));
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, op.getType(), moved, permutation);
  return success();
}

/// dot reads operands with any strides, so a transpose below it only renames dimensions, as long as the free ones keep
/// their order (the result lists them in the operand's order).
static LogicalResult absorbIntoDot(nn::DotOp op, PatternRewriter &rewriter) {
  auto renamed = [&](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract,
                     SmallVector<int64_t> &newBatch, SmallVector<int64_t> &newContract) -> Value {
    newBatch.assign(batch.begin(), batch.end());
    newContract.assign(contract.begin(), contract.end());
    auto transpose = operand.getDefiningOp<nn::TransposeOp>();
    if (!transpose)
      return operand;
    auto permutation = transpose.getPermutation();
    SmallVector<int64_t> free;
    for (int64_t dim : nn::freeDimensions(typeOf(operand).getRank(), batch, contract))
      free.push_back(permutation[dim]);
    if (!llvm::is_sorted(free))
      return operand;
    for (int64_t &dim : newBatch)
      dim = permutation[dim];
    for (int64_t &dim : newContract)
      dim = permutation[dim];
    return transpose.getInput();
  };
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  Value lhs = renamed(op.getLhs(), op.getLhsBatch(), op.getLhsContract(), lhsBatch, lhsContract);
  Value rhs = renamed(op.getRhs(), op.getRhsBatch(), op.getRhsContract(), rhsBatch, rhsContract);
  if (lhs == op.getLhs() && rhs == op.getRhs())
    return rewriter.notifyMatchFailure(op, "no operand is transposed in a way that dot can absorb");
  rewriter.replaceOpWithNewOp<nn::DotOp>(op, op.getType(), lhs, rhs, lhsBatch, rhsBatch, lhsContract,
                                         rhsContract, op.getExact());
  return success();
}

void populateSinkThroughOps(RewritePatternSet &patterns) {
  patterns.add(sinkAlongAxis<nn::SoftmaxOp>);
  patterns.add(sinkAlongAxis<nn::LogSoftmaxOp>);
  patterns.add(sinkAlongAxis<nn::CumSumOp>);
  patterns.add(sinkThroughReduce);
  patterns.add(sinkThroughMoments);
  patterns.add(sinkThroughConcat);
  patterns.add(sinkThroughPad);
  patterns.add(sinkThroughSlice);
  patterns.add(absorbIntoDot);
}

} // namespace ortc::simplify
