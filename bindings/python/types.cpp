// Types of elements: ONNX's numbers, numpy's names, DLPack's codes, formats of buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/types.h"

#include <cstring>

#include "support/ElementTypes.h"

namespace ortc::python {
namespace {

namespace dlpack = nanobind::dlpack;
using Code = dlpack::dtype_code;

struct Type {
  DataType type;
  Code code;
};
constexpr Type kTypes[] = {
    {DataType::Float32, Code::Float},  {DataType::UInt8, Code::UInt},  {DataType::Int8, Code::Int},
    {DataType::UInt16, Code::UInt},    {DataType::Int16, Code::Int},   {DataType::Int32, Code::Int},
    {DataType::Int64, Code::Int},      {DataType::Bool, Code::Bool},   {DataType::Float16, Code::Float},
    {DataType::Float64, Code::Float},  {DataType::UInt32, Code::UInt}, {DataType::UInt64, Code::UInt},
    {DataType::BFloat16, Code::Bfloat}};

const Type *find(uint8_t number) {
  for (const Type &type : kTypes)
    if (uint8_t(type.type) == number)
      return &type;
  return nullptr;
}

uint8_t find(Code code, size_t bytes) {
  for (const Type &type : kTypes)
    if (type.code == code && ortc::getElementBytes(type.type) == bytes)
      return uint8_t(type.type);
  return 0;
}

} // namespace

std::string nameType(uint8_t type) {
  const Type *found = find(type);
  return found ? getTypeName(found->type) : "type " + std::to_string(type);
}

size_t getElementBytes(uint8_t type) {
  const Type *found = find(type);
  return found ? ortc::getElementBytes(found->type) : 0;
}

dlpack::dtype toDlpack(uint8_t type) {
  const Type *found = find(type);
  return found ? dlpack::dtype{uint8_t(found->code), uint8_t(getElementBytes(type) * 8), 1} : dlpack::dtype{};
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
