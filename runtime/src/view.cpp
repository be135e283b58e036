// Types of elements, and where tensors lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {

__attribute__((noinline)) uint32_t elementSize(uint8_t dtype) {
  static const uint8_t kSizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2, 1, 1, 1, 1};
  return dtype < sizeof kSizes ? kSizes[dtype] : 0;
}

const char *safetensorsDtype(uint8_t dtype) {
  // By TensorProto.DataType.
  const char *name = findText("\0F32\0U8\0I8\0U16\0I16\0I32\0I64\0\0BOOL\0F16\0F64\0U32\0U64\0\0\0BF16",
                              dtype <= 16 ? dtype : 0);
  return *name ? name : nullptr;
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

} // namespace ortc
