// The one copy between a strided tensor and dense memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string.h>

#include "ortc/device.h"

namespace ortc {

/// Copies elements [first, first + count), in row-major order, between the view and dense memory.
inline void transfer(const ortc_view &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense) {
  uint32_t last = view.rank - 1;
  while (count) {
    uint8_t *place = view.data; // of the element `first`, which a row begins with or is entered at
    uint64_t rest = first, row = 0;
    for (uint32_t i = view.rank; i-- > 0;) {
      uint64_t dim = (uint64_t)view.dims[i], index = rest % dim;
      rest /= dim;
      place += index * (uint64_t)view.strides[i];
      if (i == last)
        row = dim - index;
    }
    row = row < count ? row : count;
    int64_t stride = view.strides[last];
    // One copy for a dense row, else one per element.
    uint64_t piece = stride == (int64_t)view.element ? row : 1;
    for (uint64_t i = 0; i < row; i += piece, place += stride, dense += piece * view.element)
      memcpy(toDense ? dense : place, toDense ? place : dense, piece * view.element);
    first += row;
    count -= row;
  }
}

} // namespace ortc
