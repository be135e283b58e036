// Positions of a row-major tensor as digits, one per dim of a loop program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/contraction/StridedView.h"

#include <set>

using namespace mlir;

namespace ortc::kernels {

bool readDigits(const LoopProgram &program, const IndexExpr &position, int64_t total,
                SmallVectorImpl<Digit> &digits) {
  if (position.constant != 0 || !position.dynamic.empty())
    return false;
  SmallVector<std::pair<int64_t, unsigned>> byScale;
  for (unsigned d = 0; d < program.dims.size(); ++d)
    byScale.push_back({position.scales[d], d});
  llvm::sort(byScale);
  int64_t expected = 1;
  for (auto [scale, d] : byScale) {
    if (scale != expected)
      return false;
    expected = scale * program.dims[d].size;
    digits.push_back({scale, expected, {}});
  }
  return expected == total;
}

void addOperand(View &view, const LoopProgram &program, const IndexExpr &position, const IndexExpr &at,
                unsigned buffer) {
  view.operands.push_back({buffer, at.constant});
  for (Digit &digit : view.digits)
    for (unsigned d = 0; d < program.dims.size(); ++d)
      if (position.scales[d] == digit.low && program.dims[d].size * digit.low == digit.high)
        digit.strides.push_back(at.scales[d]);
}

/// Where the tensor dim with this size and stride is cut, in steps of the dim.
static void collectCuts(const View &view, int64_t size, int64_t stride, std::set<int64_t> &cuts) {
  for (const Digit &digit : view.digits)
    for (int64_t end : {digit.low, digit.high})
      if (end > stride && end < stride * size)
        cuts.insert(end % stride == 0 ? end / stride : -1);
}

/// Strides of the view's operands per step of the digit that starts at `low` steps of a tensor dim.
static bool appendStrides(const View &view, int64_t low, int64_t stride, SmallVectorImpl<int64_t> &strides) {
  int64_t position = low * stride;
  for (const Digit &digit : view.digits) {
    if (digit.low <= position && position < digit.high) {
      for (int64_t step : digit.strides)
        strides.push_back(step * (position / digit.low));
      return position % digit.low == 0;
    }
  }
  strides.append(view.operands.size(), 0); // a tensor of one element
  return true;
}

bool appendDims(int64_t size, ArrayRef<const View *> views, ArrayRef<int64_t> strides,
                SmallVectorImpl<ContractionDim> &dims) {
  std::set<int64_t> cuts{1, size};
  for (auto [view, stride] : llvm::zip_equal(views, strides))
    if (stride)
      collectCuts(*view, size, stride, cuts);
  if (*cuts.begin() < 1)
    return false;
  SmallVector<int64_t> ends(cuts.begin(), cuts.end());
  SmallVector<ContractionDim> pieces;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i + 1] % ends[i] != 0)
      return false;
    ContractionDim dim{ends[i + 1] / ends[i], {}};
    for (auto [view, stride] : llvm::zip_equal(views, strides)) {
      if (stride && !appendStrides(*view, ends[i], stride, dim.strides))
        return false;
      if (!stride)
        dim.strides.append(view->operands.size(), 0);
    }
    pieces.push_back(std::move(dim));
  }
  dims.append(pieces.rbegin(), pieces.rend());
  return true;
}

} // namespace ortc::kernels
