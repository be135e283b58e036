// Elements of arrays as types of C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstring>
#include <type_traits>

#include "support/ElementTypes.h"

namespace ortc {

/// Converts one element of `type` to double, for reading labels and outputs on the host.
double loadAsDouble(DataType type, const uint8_t *from);
/// Loads one element of an integer or boolean type.
int64_t loadAsInteger(DataType type, const uint8_t *from);

namespace elements {

/// Narrow floats as types of their own, so that overloads see them.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

template <typename T> constexpr bool kIsNarrow = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;
template <typename T> constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsNarrow<T>;

template <typename T> T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// A value in a type that arithmetic knows; booleans are 0 and 1 whatever the byte is.
template <typename T> auto widen(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return halfToFloat(value.bits);
  else if constexpr (std::is_same_v<T, Bfloat>)
    return bfloatToFloat(value.bits);
  else
    return value;
}

/// Calls `action` with a value of the C++ type for `type`; booleans of files are bytes.
template <typename Action> auto dispatch(DataType type, Action action) {
  switch (type) {
  case DataType::UInt8:
    return action(uint8_t());
  case DataType::Int8:
    return action(int8_t());
  case DataType::UInt16:
    return action(uint16_t());
  case DataType::Int16:
    return action(int16_t());
  case DataType::Int32:
    return action(int32_t());
  case DataType::Int64:
    return action(int64_t());
  case DataType::UInt32:
    return action(uint32_t());
  case DataType::UInt64:
    return action(uint64_t());
  case DataType::Float16:
    return action(Half());
  case DataType::BFloat16:
    return action(Bfloat());
  case DataType::Float64:
    return action(double());
  case DataType::Bool:
    return action(uint8_t());
  case DataType::Float32:
  case DataType::None:
    break;
  }
  return action(float());
}

} // namespace elements
} // namespace ortc
