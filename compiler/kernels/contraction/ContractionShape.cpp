// The dims of a contraction: which become lanes and rows of a tile, and how k is cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/contraction/ContractionShape.h"

#include "compiler/kernels/SumOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <utility>

using namespace mlir;

namespace ortc::kernels {

int64_t sizeOf(ArrayRef<ContractionDim> dims) {
  int64_t size = 1;
  for (const ContractionDim &dim : dims)
    size *= dim.size;
  return size;
}

int64_t ContractionShape::flops() const { return 2 * sizeOf(batch) * sizeOf(m) * sizeOf(n) * sizeOf(k); }

int64_t ContractionAxes::blockDepth() const {
  return sizeOf(ArrayRef<ContractionDim>(kLoops).drop_back()) * kBlock;
}

SmallVector<ContractionDim> collapseDims(ArrayRef<ContractionDim> dims) {
  SmallVector<ContractionDim> result;
  for (const ContractionDim &dim : dims) {
    if (dim.size == 1)
      continue;
    bool merges = !result.empty();
    if (merges)
      for (auto [outer, inner] : llvm::zip_equal(result.back().strides, dim.strides))
        merges &= outer == inner * dim.size;
    if (merges)
      result.back() = {result.back().size * dim.size, dim.strides};
    else
      result.push_back(dim);
  }
  return result;
}

/// Index of the dim with stride one for `operand`, or of the largest; -1 without dims.
static int pickDim(ArrayRef<ContractionDim> dims, unsigned operand) {
  int best = -1;
  for (int i = 0, e = dims.size(); i < e; ++i) {
    if (dims[i].strides[operand] == 1)
      return i;
    if (best < 0 || dims[i].size > dims[best].size)
      best = i;
  }
  return best;
}

static ContractionDim unitDim(const ContractionShape &shape) {
  return {1, SmallVector<int64_t, 4>(shape.operands.size(), 0)};
}

/// Takes the dim `which` out of `dims` as the dim of a tile; the others are iterated around it.
static ContractionDim takeDim(SmallVector<ContractionDim> dims, int which, const ContractionShape &shape,
                              SmallVectorImpl<ContractionDim> &outer) {
  if (which < 0)
    return unitDim(shape);
  ContractionDim taken = dims[which];
  dims.erase(dims.begin() + which);
  outer.append(dims.begin(), dims.end());
  return taken;
}

bool usesDotKernel(const ContractionShape &shape) {
  SmallVector<ContractionDim> m = collapseDims(shape.m), n = collapseDims(shape.n), k = collapseDims(shape.k);
  if (m.size() > 1 || n.size() > 1 || k.size() != 1 || k[0].size < 32)
    return false;
  int64_t rows = sizeOf(m), columns = sizeOf(n);
  unsigned large = rows >= columns ? 0 : 1;
  bool bothContiguous = k[0].strides[0] == 1 && k[0].strides[1] == 1;
  return std::min(rows, columns) <= (bothContiguous ? 8 : 4) && k[0].strides[large] == 1;
}

/// k dims: as many as fit a block stay inside the tile, the rest is iterated block by block.
static void cutDepth(ContractionAxes &axes, SmallVector<ContractionDim> k, const ContractionShape &shape) {
  if (k.empty())
    k.push_back(unitDim(shape));
  size_t inside = k.size() - 1;
  int64_t depth = k.back().size;
  while (inside > 0 && depth * k[inside - 1].size <= kContractionDepth)
    depth *= k[--inside].size;
  axes.kBlocks.assign(k.begin(), k.begin() + inside);
  axes.kLoops.assign(k.begin() + inside, k.end());
  int64_t last = k.back().size;
  bool isGathered = axes.areRowsContiguous() && last > kContractionDepth;
  axes.kBlockCount = llvm::divideCeilSigned(last, isGathered ? kGatheredContractionDepth : kContractionDepth);
  // Equal blocks, in whole vectors so that only the last one has a remainder.
  axes.kBlock =
      axes.kBlockCount == 1 ? last : llvm::alignTo(llvm::divideCeilSigned(last, axes.kBlockCount), 16);
  axes.kBlockCount = llvm::divideCeilSigned(last, axes.kBlock);
}

ContractionAxes chooseAxes(const ContractionShape &shape, unsigned output) {
  ContractionAxes axes;
  SmallVector<ContractionDim> m = collapseDims(shape.m), n = collapseDims(shape.n), k = collapseDims(shape.k);

  // Lanes go along n where the output is contiguous there, else along m; a few columns beside many contiguous rows are
  // better stored one by one than computed in nearly empty vectors.
  int mLane = pickDim(m, output), nLane = pickDim(n, output);
  bool mContiguous = mLane >= 0 && m[mLane].strides[output] == 1;
  bool nContiguous = nLane >= 0 && n[nLane].strides[output] == 1;
  int64_t columns = nLane >= 0 ? n[nLane].size : 1;
  int mInput = pickDim(m, 0);
  bool thin = columns <= 4 && mInput >= 0 && m[mInput].strides[0] == 1 && m[mInput].size >= 16;
  bool swap = (mContiguous && !nContiguous) || thin;
  if (swap) {
    axes.rowOperand = 1;
    axes.laneOperand = 0;
    std::swap(m, n);
  }
  axes.outer = collapseDims(shape.batch);
  int laneIndex = thin ? mInput : pickDim(n, output);
  axes.lane = takeDim(n, laneIndex, shape, axes.outer);
  int rowIndex = -1;
  for (int i = 0, e = m.size(); i < e; ++i)
    if (rowIndex < 0 || m[i].size > m[rowIndex].size)
      rowIndex = i;
  axes.row = takeDim(m, rowIndex, shape, axes.outer);
  axes.outerTotal = sizeOf(axes.outer);

  cutDepth(axes, k, shape);
  return axes;
}

} // namespace ortc::kernels
