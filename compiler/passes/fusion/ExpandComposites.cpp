// Normalisations as reductions and arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One generator then makes every normalisation, forward and backward, and fusion sees what they share. Moments of large
// tensors are those of blocks, so that memory is read once (decision 0012). Reductions over
// many elements that leave few results are cut here: the first stage has enough independent pieces for the workers. So
// are filter gradients (decision 0013), and concatenations of many parts.
#include "compiler/passes/fusion/Passes.h"

#include "compiler/kernels/SumOrder.h"
#include "dialects/nn/TensorBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ortc::kernels;

namespace ortc::fusion {

#define GEN_PASS_DEF_EXPANDCOMPOSITESPASS
#include "compiler/passes/fusion/Passes.h.inc"

using nn::TensorBuilder;

/// Parts that one kernel concatenates.
static constexpr size_t kMaxParts = 32;

/// What a reduction reads, as work to be shared out.
struct Reduced {
  Reduced(Value input, ArrayRef<int64_t> axes) {
    auto type = cast<RankedTensorType>(input.getType());
    ArrayRef<int64_t> shape = type.getShape();
    for (auto [d, size] : llvm::enumerate(shape))
      (llvm::is_contained(axes, d) ? rows : results) *= size;
    for (int64_t d = shape.size(); d-- > 0 && !llvm::is_contained(axes, d);)
      columns *= shape[d];
    // Where the innermost dimension that is not 1 is reduced.
    overLanes = columns == 1;
    bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }

  /// Groups of `width` columns.
  int64_t groups(int64_t width) const { return results / columns * ((columns + width - 1) / width); }

  int64_t rows = 1, results = 1, bytes = 0;
  int64_t columns = 1; ///< results that lie beside each other
  bool overLanes = false;
};

/// Of a backend that shares out rows of sums over leading dimensions (FusionLimits::columnRows).
struct ColumnLimits {
  bool cuts(const Reduced &reduced) const {
    return reduced.rows > rows && reduced.bytes > wholeBytes && reduced.groups(kColumnWidth) < groups;
  }

  static constexpr int64_t kColumnWidth = 32;
  int64_t rows = 0, wholeBytes = 0, groups = 0;
};

static Value widened(TensorBuilder &b, Value x) {
  unsigned width = TensorBuilder::elementOf(x).getIntOrFloatBitWidth();
  return width < 32 ? b.cast(x, b.getF32Type()) : x;
}

static Value expandSoftmax(TensorBuilder &b, Value x, int64_t axis, bool logarithm) {
  Type element = TensorBuilder::elementOf(x);
  x = widened(b, x);
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(x));
  auto along = [&](Value row) { return b.broadcastAlong(row, shape, {axis}); };
  Value shifted = b.sub(x, along(b.reduce(nn::ReduceKind::max, x, {axis})));
  Value exponential = b.exp(shifted), sum = b.sum(exponential, {axis});
  Value result = logarithm ? b.sub(shifted, along(b.log(sum)))
                           : b.mul(exponential, along(b.div(b.constantLike(sum, 1), sum)));
  return b.cast(result, element);
}

/// Mean and variance of blocks that stay in a core's caches while they are read twice, then those of all
/// blocks: memory is read once (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
/// computing sample variances", 1979).
/// `dims` runs over the reduced dimensions, which are one run, from `first` on.
static std::pair<Value, Value> blockedMoments(TensorBuilder &b, Value x, int64_t first, int64_t dims,
                                              int64_t block) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(x));
  int64_t all = nn::elementCount(ArrayRef(shape).slice(first, dims)), blocks = all / block;
  SmallVector<int64_t> cut(shape.begin(), shape.begin() + first);
  cut.append({blocks, block});
  cut.append(shape.begin() + first + dims, shape.end());
  Value cutInput = b.reshape(x, cut), means = b.mean(cutInput, {first + 1});
  Value centered = b.sub(cutInput, b.broadcastAlong(means, cut, {first + 1}));
  Value squares = b.sum(b.mul(centered, centered), {first + 1});
  Value mean = b.mean(means, {first});
  Value apart = b.sub(means, b.broadcastAlong(mean, TensorBuilder::shapeOf(means), {first}));
  Value variance = b.add(b.mulScalar(b.sum(squares, {first}), 1.0 / static_cast<double>(all)),
                         b.mean(b.mul(apart, apart), {first}));
  return {mean, variance};
}

/// Elements of a block of `blockedMoments` for each result, of the reduced dimensions `sizes`: whole inner
/// dimensions and a part of the next, at most `most`. 1 where no number of them is about right.
static int64_t momentsBlockOf(ArrayRef<int64_t> sizes, int64_t most) {
  int64_t block = 1;
  for (int64_t size : llvm::reverse(sizes)) {
    int64_t part = std::min(size, most / block);
    while (size % part != 0)
      --part;
    block *= part;
    if (part < size)
      break;
  }
  return block >= kLeastMomentsBlock ? block : 1;
}

static std::pair<Value, Value> momentsOf(TensorBuilder &b, Value x, ArrayRef<int64_t> axes,
                                         const ColumnLimits &limits) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(x));
  bool isOneRun = !axes.empty() && axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  bool isLarge = limits.rows > 0 ? limits.cuts(Reduced(x, axes)) : nn::elementCount(shape) >= kLargeMoments;
  if (isOneRun && axes.back() + 1 < static_cast<int64_t>(shape.size()) && isLarge) {
    ArrayRef<int64_t> sizes = ArrayRef(shape).slice(axes.front(), axes.size());
    int64_t block = momentsBlockOf(sizes, limits.rows > 0 ? limits.rows : kMomentsBlock);
    if (block > 1 && block < nn::elementCount(sizes))
      return blockedMoments(b, x, axes.front(), axes.size(), block);
  }
  Value mean = b.mean(x, axes);
  Value centered = b.sub(x, b.broadcastAlong(mean, shape, axes));
  return {mean, b.mean(b.mul(centered, centered), axes)};
}

static void expandMoments(TensorBuilder &b, nn::MomentsOp op, const ColumnLimits &limits) {
  auto [mean, variance] = momentsOf(b, widened(b, op.getInput()), llvm::to_vector(op.getAxes()), limits);
  Type element = TensorBuilder::elementOf(op.getInput());
  op.getMean().replaceAllUsesWith(b.cast(mean, element));
  op.getVariance().replaceAllUsesWith(b.cast(variance, element));
}

/// Cuts a concatenation of many parts in concatenations of some of them: the code for a part of one knows of
/// all parts before it.
static void splitConcat(nn::ConcatOp op) {
  TensorBuilder b(op.getLoc(), op);
  SmallVector<Value> parts(op.getInputs());
  while (parts.size() > kMaxParts) {
    SmallVector<Value> joined;
    for (size_t at = 0; at < parts.size(); at += kMaxParts) {
      ArrayRef<Value> some = ArrayRef(parts).slice(at, std::min(kMaxParts, parts.size() - at));
      joined.push_back(some.size() == 1 ? some.front() : b.concat(some, op.getAxis()));
    }
    parts = std::move(joined);
  }
  if (parts.size() != op.getInputs().size())
    op.getInputsMutable().assign(parts);
}

/// In how many equal parts a run of dimensions can be cut with every part a product of dimensions and one part of a
/// dimension: the smallest such number from `wanted` to `limit`, or else the largest one below; 1 when there
/// is none. Other cuts would keep the reduction out of the loops of what computes its input.
static int64_t cutOf(ArrayRef<int64_t> dims, int64_t wanted, int64_t limit) {
  limit = std::min(nn::elementCount(dims) / 2, limit);
  SmallVector<int64_t> cuts;
  int64_t outer = 1;
  for (int64_t size : dims) {
    for (int64_t part = 1; part <= size && outer * part <= limit; ++part)
      if (size % part == 0)
        cuts.push_back(outer * part);
    outer *= size;
  }
  int64_t below = 1;
  for (int64_t cut : cuts) {
    if (cut >= wanted)
      return cut;
    below = std::max(below, cut);
  }
  return below;
}

/// Parts that a reduction should have and that it may have: one where there is enough work side by side.
static std::pair<int64_t, int64_t> countParts(const Reduced &reduced, const ColumnLimits &limits) {
  if (limits.rows > 0 && !reduced.overLanes) {
    int64_t parts = limits.cuts(reduced) ? llvm::divideCeilSigned(reduced.rows, limits.rows) : 1;
    return {parts, 2 * parts};
  }
  int64_t pieces = reduced.overLanes ? reduced.results : reduced.groups(kReducedColumns);
  if (pieces >= kReducedPieces)
    return {1, 1};
  int64_t elements = reduced.rows * reduced.results;
  return {llvm::divideCeilSigned(kReducedPieces, pieces), elements / pieces / kReducedPieceElements};
}

/// Cuts the outermost reduced dimensions in two stages when there is too little work side by side.
static void splitReduction(nn::ReduceOp op, const ColumnLimits &limits) {
  TensorBuilder b(op.getLoc(), op);
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(op.getInput()));
  auto axes = llvm::to_vector(op.getAxes());
  int64_t elements = nn::elementCount(shape);
  Type element = TensorBuilder::elementOf(op.getInput());
  if (axes.empty() || elements < kReducedPieceElements * 4 || element.getIntOrFloatBitWidth() < 32)
    return;
  auto [wanted, most] = countParts(Reduced(op.getInput(), axes), limits);
  if (wanted == 1)
    return;
  // The first run of reduced dimensions.
  int64_t first = axes.front(), last = first, size = shape[first];
  while (llvm::is_contained(axes, last + 1))
    size *= shape[++last];
  int64_t divisor = cutOf(ArrayRef(shape).slice(first, last - first + 1), wanted, most);
  if (divisor == 1)
    return;
  SmallVector<int64_t> cut(shape.begin(), shape.begin() + first), cutAxes{first + 1};
  cut.append({divisor, size / divisor});
  cut.append(shape.begin() + last + 1, shape.end());
  for (int64_t axis : axes)
    if (axis > last)
      cutAxes.push_back(axis - (last - first) + 1);
  Value partial = b.reduce(op.getKind(), b.reshape(op.getInput(), cut), cutAxes);
  op.replaceAllUsesWith(b.reduce(op.getKind(), partial, {first}));
  op.erase();
}

/// Filter gradients with few results for much work: the batch is cut in parts, so that there is work for
/// several workers. Kernels are made of f32 and f64.
static void splitFilterGradient(nn::ConvFilterGradOp op) {
  TensorBuilder b(op.getLoc(), op);
  RankedTensorType filter = op.getFilterType();
  ArrayRef<int64_t> gradient = TensorBuilder::shapeOf(op.getGradient());
  int64_t parts = kFilterGradParts;
  while (parts > 1 && (gradient.front() % parts != 0 ||
                       nn::elementCount(gradient.drop_back()) / parts < kFilterGradPartPositions))
    parts /= 2;
  if (op.getParts() > 1 || parts == 1 || filter.getNumElements() > kSmallFilter ||
      filter.getElementType().getIntOrFloatBitWidth() < 32)
    return;
  SmallVector<int64_t> shape{parts};
  llvm::append_range(shape, filter.getShape());
  auto split = nn::ConvFilterGradOp::create(b, filter.clone(shape), op.getInput(), op.getGradient(),
                                            op.getStrides(), op.getPaddingLow(), op.getPaddingHigh(),
                                            op.getDilations(), op.getGroups());
  op.replaceAllUsesWith(b.sum(split, {0}));
  op.erase();
}

namespace {

struct ExpandCompositesPass : impl::ExpandCompositesPassBase<ExpandCompositesPass> {
  using Base::Base;

  void runOnOperation() override {
    const ColumnLimits limits{columnRows, wholeColumnBytes, columnGroups};
    SmallVector<Operation *> composites;
    getOperation()->walk([&](Operation *op) {
      if (isa<nn::SoftmaxOp, nn::LogSoftmaxOp, nn::MomentsOp, nn::DetachOp, nn::StraightThroughOp>(op))
        composites.push_back(op);
    });
    for (Operation *op : composites) {
      TensorBuilder b(op->getLoc(), op);
      if (auto softmax = dyn_cast<nn::SoftmaxOp>(op))
        softmax.replaceAllUsesWith(expandSoftmax(b, softmax.getInput(), softmax.getAxis(), false));
      else if (auto softmax = dyn_cast<nn::LogSoftmaxOp>(op))
        softmax.replaceAllUsesWith(expandSoftmax(b, softmax.getInput(), softmax.getAxis(), true));
      else if (auto detach = dyn_cast<nn::DetachOp>(op))
        detach.replaceAllUsesWith(detach.getInput());
      else if (auto straight = dyn_cast<nn::StraightThroughOp>(op))
        straight.replaceAllUsesWith(straight.getValue());
      else
        expandMoments(b, cast<nn::MomentsOp>(op), limits);
      op->erase();
    }
    SmallVector<nn::ConcatOp> concatenations;
    getOperation()->walk([&](nn::ConcatOp op) { concatenations.push_back(op); });
    for (nn::ConcatOp op : concatenations)
      splitConcat(op);
    SmallVector<nn::ReduceOp> reductions;
    getOperation()->walk([&](nn::ReduceOp op) { reductions.push_back(op); });
    for (nn::ReduceOp op : reductions)
      splitReduction(op, limits);
    SmallVector<nn::ConvFilterGradOp> filterGradients;
    getOperation()->walk([&](nn::ConvFilterGradOp op) { filterGradients.push_back(op); });
    for (nn::ConvFilterGradOp op : filterGradients)
      splitFilterGradient(op);
  }
};

} // namespace
} // namespace ortc::fusion
