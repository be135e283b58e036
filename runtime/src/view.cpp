// Strided tensors: the one copy through which everything enters and leaves a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

// By TensorProto.DataType.
static const char kDtypes[][4] = {"",
                                  "F32",
                                  "U8",
                                  "I8",
                                  "U16",
                                  "I16",
                                  "I32",
                                  "I64",
                                  "",
                                  {'B', 'O', 'O', 'L'},
                                  "F16",
                                  "F64",
                                  "U32",
                                  "U64",
                                  "",
                                  "",
                                  {'B', 'F', '1', '6'}};

uint32_t elementSize(uint8_t dtype) {
  static const uint8_t kSizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2, 1, 1, 1, 1};
  return dtype < sizeof kSizes ? kSizes[dtype] : 0;
}

const char *safetensorsDtype(uint8_t dtype) {
  return dtype < sizeof kDtypes / sizeof kDtypes[0] && kDtypes[dtype][0] ? kDtypes[dtype] : nullptr;
}

View makeView(uint8_t *data, uint8_t dtype, uint32_t rank, const int64_t *dims, const int64_t *strides) {
  View view;
  view.data = data;
  view.element = elementSize(dtype);
  view.count = 1;
  view.rank = 0;
  for (uint32_t i = 0; i < rank; i++)
    view.count *= (uint64_t)dims[i];
  for (uint32_t i = 0; view.count && i < rank; i++) {
    if (dims[i] == 1)
      continue;
    int64_t merged = dims[i];
    if (view.rank && view.strides[view.rank - 1] == dims[i] * strides[i]) // steps on where this one ends
      merged *= view.dims[--view.rank];
    view.dims[view.rank] = merged;
    view.strides[view.rank++] = strides[i];
  }
  if (!view.rank) { // one element, or none
    view.rank = 1;
    view.dims[0] = (int64_t)view.count;
    view.strides[0] = view.element;
  }
  return view;
}

template <typename T>
static void copyRow(uint8_t *strided, int64_t stride, uint8_t *dense, uint64_t count, bool toDense) {
  for (; count; count--, strided += stride, dense += sizeof(T))
    memcpy(toDense ? dense : strided, toDense ? strided : dense, sizeof(T));
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
    if (stride == (int64_t)view.element) {
      memcpy(toDense ? dense : place, toDense ? place : dense, row * view.element);
    } else if (view.element == 4) {
      copyRow<uint32_t>(place, stride, dense, row, toDense);
    } else {
      for (uint32_t byte = 0; byte < view.element; byte++) { // rare dtypes: byte by byte
        uint8_t *from = place + byte, *to = dense + byte;
        for (uint64_t i = 0; i < row; i++, from += stride, to += view.element)
          *(toDense ? to : from) = *(toDense ? from : to);
      }
    }
    dense += row * view.element;
    first += row;
    count -= row;
  }
}

} // namespace ortc
