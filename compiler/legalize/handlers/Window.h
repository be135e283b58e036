// Windows of convolutions and pools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/legalize/Node.h"

namespace ortc::legalize {

/// No window size, stride, dilation or pad is larger, so that sums and products of them and of sizes of
/// dimensions do not overflow.
inline constexpr int64_t kMostWindow = int64_t(1) << 20;
/// No window has more places.
inline constexpr int64_t kMostPlaces = int64_t(1) << 30;

/// kernel_shape, strides, dilations, pads and auto_pad of a node, one entry for each spatial dimension.
struct Window {
  SmallVector<int64_t> size, strides, dilations, low, high;
  SmallVector<int64_t> overhang; ///< how far the last window reaches beyond the padding
  SmallVector<int64_t> output;   ///< spatial sizes of the result
  llvm::StringRef automatic;     ///< auto_pad

  /// Reads the attributes for an input with `rank` spatial dimensions, with `low` and `high` as `pads` has them
  /// (zero with auto_pad VALID); `kernel` is the filter's size, if there is one. Refuses what is out of range.
  LogicalResult readAttributes(Node &n, Ints kernel, size_t rank);
  /// The same, and how the windows lie in an input of these spatial sizes: resolves auto_pad and, when
  /// `ceilMode`, rounds up (no window starts in the padding at the end). Refuses windows that do not fit.
  LogicalResult read(Node &n, Ints kernel, Ints input, bool ceilMode);
  int64_t extent(size_t i) const { return dilations[i] * (size[i] - 1) + 1; }
};

/// An attribute of integers in [least, kMostWindow] with `count` entries, all `orElse` when it is absent.
LogicalResult readWindowList(Node &n, llvm::StringRef name, int64_t orElse, size_t count, int64_t least,
                             SmallVector<int64_t> &values);

} // namespace ortc::legalize
