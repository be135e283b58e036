// Strided tensors: the one copy through which everything enters and leaves a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

uint32_t elementSize(uint8_t dtype) {
  // By TensorProto.DataType: log2 of the size plus 1, 0 for what cannot be stored.
  static const uint8_t kSizes[] = {0, 3, 1, 1, 2, 2, 3, 4, 0, 1, 2, 4, 3, 4, 0, 0, 2, 1, 1, 1, 1};
  return dtype < sizeof kSizes && kSizes[dtype] ? 1u << (kSizes[dtype] - 1) : 0;
}

const char *safetensorsDtype(uint8_t dtype) {
  static const char kNames[][8] = {"",    "F32", "U8",   "I8",      "U16", "I16",    "I32",
                                   "I64", "",    "BOOL", "F16",     "F64", "U32",    "U64",
                                   "",    "",    "BF16", "F8_E4M3", "",    "F8_E5M2"};
  return dtype < sizeof kNames / sizeof kNames[0] && kNames[dtype][0] ? kNames[dtype] : nullptr;
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
    uint32_t last = view.rank - 1;
    if (view.rank && view.strides[last] == dims[i] * strides[i]) { // steps on where this one ends
      view.dims[last] *= dims[i];
      view.strides[last] = strides[i];
      continue;
    }
    view.dims[view.rank] = dims[i];
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
  for (uint64_t i = 0; i < count; i++, strided += stride, dense += sizeof(T))
    memcpy(toDense ? dense : strided, toDense ? strided : dense, sizeof(T));
}

void transfer(const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense) {
  uint64_t index[ORTC_MAX_RANK + 1];
  uint8_t *place = view.data;
  uint32_t last = view.rank - 1;
  for (uint32_t i = view.rank; i-- > 0;) {
    if (!view.dims[i])
      return;
    index[i] = first % (uint64_t)view.dims[i];
    first /= (uint64_t)view.dims[i];
    place += index[i] * (uint64_t)view.strides[i];
  }
  int64_t stride = view.strides[last];
  while (count) {
    uint64_t row = (uint64_t)view.dims[last] - index[last];
    row = row < count ? row : count;
    if (stride == (int64_t)view.element)
      memcpy(toDense ? dense : place, toDense ? place : dense, row * view.element);
    else if (view.element == 4)
      copyRow<uint32_t>(place, stride, dense, row, toDense);
    else if (view.element == 2)
      copyRow<uint16_t>(place, stride, dense, row, toDense);
    else if (view.element == 8)
      copyRow<uint64_t>(place, stride, dense, row, toDense);
    else
      copyRow<uint8_t>(place, stride, dense, row, toDense);
    dense += row * view.element;
    count -= row;
    place -= index[last] * (uint64_t)stride; // on to the next row
    index[last] = 0;
    for (uint32_t i = last; count && i-- > 0;) {
      place += view.strides[i];
      if (++index[i] < (uint64_t)view.dims[i])
        break;
      place -= (uint64_t)view.strides[i] * index[i];
      index[i] = 0;
    }
  }
}

} // namespace ortc
