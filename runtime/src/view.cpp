// Strided tensors: the one copy through which everything enters and leaves a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

// By TensorProto.DataType.
static const char kDtypes[][5] = {"",     "F32", "U8",  "I8",  "U16", "I16", "I32", "I64", "",
                                  "BOOL", "F16", "F64", "U32", "U64", "",    "",    "BF16"};

__attribute__((noinline)) uint32_t elementSize(uint8_t dtype) {
  static const uint8_t kSizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2, 1, 1, 1, 1};
  return dtype < sizeof kSizes ? kSizes[dtype] : 0;
}

const char *safetensorsDtype(uint8_t dtype) {
  return dtype < sizeof kDtypes / sizeof kDtypes[0] && kDtypes[dtype][0] ? kDtypes[dtype] : nullptr;
}

View makeView(void *data, const ortc_file_view &v) {
  View view;
  view.data = (uint8_t *)data;
  view.element = elementSize(v.dtype);
  view.count = 1;
  view.rank = 0;
  for (uint32_t i = 0; i < v.rank; i++)
    view.count *= (uint64_t)v.dims[i];
  for (uint32_t i = 0; view.count && i < v.rank; i++) {
    int64_t dim = v.dims[i], stride = v.strides[i];
    if (dim == 1)
      continue;
    if (view.rank && view.strides[view.rank - 1] == dim * stride) // steps on where this one ends
      dim *= view.dims[--view.rank];
    view.dims[view.rank] = dim;
    view.strides[view.rank++] = stride;
  }
  if (!view.rank) { // one element, or none
    view.rank = 1;
    view.dims[0] = (int64_t)view.count;
    view.strides[0] = view.element;
  }
  return view;
}

void transfer(const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense) {
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
