// Elements of arrays as types of C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Elements.h"

namespace ortc {

using namespace elements;

double loadAsDouble(DataType type, const uint8_t *from) {
  return dispatch(type,
                  [from](auto example) { return static_cast<double>(widen(load<decltype(example)>(from))); });
}

int64_t loadAsInteger(DataType type, const uint8_t *from) {
  return dispatch(type, [from](auto example) -> int64_t {
    if constexpr (kIsFloat<decltype(example)>)
      return 0;
    else
      return static_cast<int64_t>(load<decltype(example)>(from));
  });
}

} // namespace ortc
