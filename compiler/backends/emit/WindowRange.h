// Which positions of a window lie inside its input.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"

namespace ortc::emit {

/// One dimension of a sliding window, in elements: of pools.
struct WindowDim {
  int64_t input, window, stride, low, dilation;
};

/// The taps of the window at output position `output` that lie inside the input.
inline IndexRange tapsInside(LoopBuilder &b, const WindowDim &dim, mlir::Value output) {
  mlir::Value start = b.sub(b.mul(output, dim.stride), b.index(dim.low));
  mlir::Value first = b.ceilDivPositive(b.sub(b.index(0), start), dim.dilation);
  mlir::Value last = b.ceilDivPositive(b.sub(b.index(dim.input), start), dim.dilation);
  return {first, b.minimum(last, b.index(dim.window))};
}

/// Where tap `tap` of the window at `output` reads.
inline mlir::Value tapPosition(LoopBuilder &b, const WindowDim &dim, mlir::Value output, mlir::Value tap) {
  return b.add(b.sub(b.mul(output, dim.stride), b.index(dim.low)), b.mul(tap, dim.dilation));
}

} // namespace ortc::emit
