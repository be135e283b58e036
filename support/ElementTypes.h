// Element types of arrays, numbered as ONNX does, and arithmetic on sizes that cannot overflow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ortc {

/// ONNX's TensorProto.DataType.
enum class DataType : uint8_t {
  None = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  BFloat16 = 16
};

/// Bytes of one element, 0 for a type this library does not read.
size_t getElementBytes(DataType type);
/// "float32", ...; numpy's names, and "bfloat16".
const char *getTypeName(DataType type);
bool isFloat(DataType type);
bool isInteger(DataType type); ///< not Bool

/// Exact conversions between the bits of narrow floats and float. To narrow: round to nearest, ties to even.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

using Shape = std::vector<int64_t>;

/// Product of the dimensions from `first` on; false when it does not fit or a dimension is negative.
bool countElements(const Shape &shape, int64_t &count, size_t first = 0);
/// count * size in bytes; false when it does not fit.
bool countBytes(const Shape &shape, DataType type, size_t &bytes);
/// "[2, 3]".
std::string formatShape(const Shape &shape);

} // namespace ortc
