//===- Window.h - windows of convolutions and pools -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/legalize/Node.h"

namespace ortc::legalize {

/// kernel_shape, strides, dilations and pads of a node, one entry for each spatial dimension.
struct Window {
  SmallVector<int64_t> size, strides, dilations, low, high, overhang;
  SmallVector<int64_t> output; ///< spatial sizes of the result

  /// Reads the attributes; `kernel` is used where kernel_shape is absent. `input` are the spatial sizes.
  /// Resolves auto_pad and, when `ceilMode`, rounds up (no window starts in the padding at the end). Refuses
  /// what cannot be.
  LogicalResult read(Node &n, Ints kernel, Ints input, bool ceilMode);
  int64_t extent(size_t i) const { return dilations[i] * (size[i] - 1) + 1; }
};

} // namespace ortc::legalize
