// The order of the elements along an axis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/sort/SortForm.h"

#include "dialects/nn/NnShapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::kernels {

/// A list of so many elements is cheaper than merging.
static constexpr int64_t kMostSelected = 16;

SortColumn::SortColumn(nn::ArgSortOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  axis = input.getDimSize(op.getAxis());
  taken = cast<RankedTensorType>(op.getType()).getDimSize(op.getAxis());
  inner = nn::elementCount(input.getShape().drop_front(op.getAxis() + 1));
  count = nn::elementCount(input.getShape().take_front(op.getAxis())) * inner;
}

bool SortColumn::selects() const { return taken <= kMostSelected && taken < axis; }

int64_t SortColumn::passes() const { return llvm::Log2_64_Ceil(std::max<int64_t>(axis, 1)); }

int64_t SortColumn::work() const {
  int64_t steps = selects() ? axis + taken * taken : axis * (passes() + 1);
  return 4 * steps;
}

} // namespace ortc::kernels
