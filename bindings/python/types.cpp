// Types of elements: ONNX's numbers, numpy's names, DLPack's codes, formats of buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/types.h"

#include <cstring>

namespace ortc::python {
namespace {

namespace dlpack = nanobind::dlpack;
using Code = dlpack::dtype_code;

struct Type {
  uint8_t number; ///< TensorProto.DataType
  const char *name;
  Code code;
  uint8_t bytes;
};
constexpr Type kTypes[] = {{1, "float32", Code::Float, 4},
                           {2, "uint8", Code::UInt, 1},
                           {3, "int8", Code::Int, 1},
                           {4, "uint16", Code::UInt, 2},
                           {5, "int16", Code::Int, 2},
                           {6, "int32", Code::Int, 4},
                           {7, "int64", Code::Int, 8},
                           {9, "bool", Code::Bool, 1},
                           {10, "float16", Code::Float, 2},
                           {11, "float64", Code::Float, 8},
                           {12, "uint32", Code::UInt, 4},
                           {13, "uint64", Code::UInt, 8},
                           {kBfloat16, "bfloat16", Code::Bfloat, 2}};

const Type *find(uint8_t number) {
  for (const Type &type : kTypes)
    if (type.number == number)
      return &type;
  return nullptr;
}

uint8_t find(Code code, size_t bytes) {
  for (const Type &type : kTypes)
    if (type.code == code && type.bytes == bytes)
      return type.number;
  return 0;
}

} // namespace

std::string nameType(uint8_t type) {
  const Type *found = find(type);
  return found ? found->name : "type " + std::to_string(type);
}

size_t getElementBytes(uint8_t type) {
  const Type *found = find(type);
  return found ? found->bytes : 0;
}

dlpack::dtype toDlpack(uint8_t type) {
  const Type *found = find(type);
  return found ? dlpack::dtype{uint8_t(found->code), uint8_t(found->bytes * 8), 1} : dlpack::dtype{};
}

uint8_t fromDlpack(dlpack::dtype type) {
  return type.lanes == 1 && type.bits % 8 == 0 ? find(Code(type.code), type.bits / 8) : 0;
}

uint8_t fromFormat(const char *format, size_t elementBytes) {
  if (!format) // bytes
    return 2;
  if (*format == '@' || *format == '=' || *format == '<')
    ++format;
  if (!format[0] || format[1])
    return 0;
  if (strchr("efd", *format))
    return find(Code::Float, elementBytes);
  if (strchr("bhilq", *format))
    return find(Code::Int, elementBytes);
  if (strchr("BHILQ", *format))
    return find(Code::UInt, elementBytes);
  return *format == '?' ? find(Code::Bool, elementBytes) : 0;
}

std::string describe(uint8_t type, size_t rank, const int64_t *dims) {
  std::string text = nameType(type) + " [";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

} // namespace ortc::python
