// Names of types in safetensors files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <utility>

#include "support/ElementTypes.h"

namespace ortc::engine {

inline constexpr std::pair<std::string_view, DataType> kSafetensorsTypes[] = {
    {"BOOL", DataType::Bool},   {"U8", DataType::UInt8},      {"I8", DataType::Int8},
    {"U16", DataType::UInt16},  {"I16", DataType::Int16},     {"U32", DataType::UInt32},
    {"I32", DataType::Int32},   {"U64", DataType::UInt64},    {"I64", DataType::Int64},
    {"F16", DataType::Float16}, {"BF16", DataType::BFloat16}, {"F32", DataType::Float32},
    {"F64", DataType::Float64}};

} // namespace ortc::engine
