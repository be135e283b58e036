// Types of elements: ONNX's numbers, numpy's names, DLPack's codes, formats of buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <nanobind/ndarray.h>
#include <string>

namespace ortc::python {

constexpr uint8_t kBfloat16 = 16; ///< TensorProto.DataType; numpy has no such type of its own

/// "float32"; "type 8" where there are no arrays of a type.
std::string nameType(uint8_t type);
/// In bytes; 0 where there are no arrays of a type.
size_t getElementBytes(uint8_t type);
nanobind::dlpack::dtype toDlpack(uint8_t type);
/// 0 where the artifact's tensors have no such type.
uint8_t fromDlpack(nanobind::dlpack::dtype type);
/// Of a format of Python's buffers, such as "<f"; 0 as above.
uint8_t fromFormat(const char *format, size_t elementBytes);

/// "float32 [64, 10]".
std::string describe(uint8_t type, size_t rank, const int64_t *dims);

} // namespace ortc::python
