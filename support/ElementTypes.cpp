// Element types of arrays and checked arithmetic on sizes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ElementTypes.h"

#include <bit>
#include <cmath>

namespace ortc {

size_t getElementBytes(DataType type) {
  switch (type) {
  case DataType::UInt8:
  case DataType::Int8:
  case DataType::Bool:
    return 1;
  case DataType::UInt16:
  case DataType::Int16:
  case DataType::Float16:
  case DataType::BFloat16:
    return 2;
  case DataType::Float32:
  case DataType::Int32:
  case DataType::UInt32:
    return 4;
  case DataType::Int64:
  case DataType::UInt64:
  case DataType::Float64:
    return 8;
  case DataType::None:
    break;
  }
  return 0;
}

const char *getTypeName(DataType type) {
  switch (type) {
  case DataType::Float32:
    return "float32";
  case DataType::UInt8:
    return "uint8";
  case DataType::Int8:
    return "int8";
  case DataType::UInt16:
    return "uint16";
  case DataType::Int16:
    return "int16";
  case DataType::Int32:
    return "int32";
  case DataType::Int64:
    return "int64";
  case DataType::Bool:
    return "bool";
  case DataType::Float16:
    return "float16";
  case DataType::Float64:
    return "float64";
  case DataType::UInt32:
    return "uint32";
  case DataType::UInt64:
    return "uint64";
  case DataType::BFloat16:
    return "bfloat16";
  case DataType::None:
    break;
  }
  return "an unknown type";
}

bool isFloat(DataType type) {
  return type == DataType::Float32 || type == DataType::Float64 || type == DataType::Float16 ||
         type == DataType::BFloat16;
}

bool isInteger(DataType type) { return type != DataType::None && type != DataType::Bool && !isFloat(type); }

float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) // zero and subnormals: mantissa * 2^-24, exact in float
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(float(mantissa) * 0x1p-24f));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) // NaN stays NaN, quiet
    return uint16_t(sign | 0x7e00 | (bits >> 13 & 0x3ff));
  if (bits >= 0x477ff000) // 65520 and above round to infinity
    return uint16_t(sign | 0x7c00);
  if (bits < 0x38800000) { // below 2^-14: adding 0.5 rounds to multiples of 2^-24 by float arithmetic itself
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t odd = bits >> 13 & 1;
  return uint16_t(sign | ((bits - 0x38000000u + 0xfff + odd) >> 13));
}

float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t floatToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

bool countElements(const Shape &shape, int64_t &count, size_t first) {
  count = 1;
  bool empty = false;
  for (size_t i = first; i < shape.size(); ++i) {
    if (shape[i] < 0)
      return false;
    empty |= shape[i] == 0;
  }
  if (empty) {
    count = 0;
    return true;
  }
  for (size_t i = first; i < shape.size(); ++i)
    if (__builtin_mul_overflow(count, shape[i], &count))
      return false;
  return true;
}

bool countBytes(const Shape &shape, DataType type, size_t &bytes) {
  int64_t count = 0;
  return countElements(shape, count) &&
         !__builtin_mul_overflow(count, getElementBytes(type), &bytes) && // exact, whatever size_t is
         bytes <= size_t(PTRDIFF_MAX);
}

std::string formatShape(const Shape &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace ortc
