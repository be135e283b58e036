// Integers and booleans of data files, bit by bit: nothing else may be compared with a tolerance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/data/data_source.h"

#include <cstring>

namespace ortc::test {

/// Whether elements of `type` are compared bit by bit.
inline bool isExact(DataType type) { return type == DataType::Bool || isInteger(type); }

/// The bits of element i of an array of integers or booleans, above them zeros.
inline uint64_t bitsOf(const Array &array, int64_t i) {
  uint64_t bits = 0;
  size_t width = getElementBytes(array.type);
  std::memcpy(&bits, array.data + i * width, width);
  return bits;
}

} // namespace ortc::test
