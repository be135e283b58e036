// The order of the elements along an axis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/NnDialect.h"

namespace ortc::kernels {

/// What an arg_sort does with each column: the elements along its axis.
struct SortColumn {
  explicit SortColumn(nn::ArgSortOp op);

  /// Whether a list of the elements that are taken is cheaper than merging.
  bool selects() const;
  int64_t passes() const; ///< of merging
  int64_t work() const;   ///< steps for one column, about

  int64_t axis, taken; ///< elements of a column, and of them in the result
  int64_t inner;       ///< columns that lie side by side
  int64_t count;       ///< columns
};

} // namespace ortc::kernels
