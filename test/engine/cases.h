// Folders of cases, one file each, and the arrays in them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/data/data_source.h"

namespace ortc::engine::test {

/// The models of a folder without their extension, sorted.
inline std::vector<std::string> listCases(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".onnx")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A name that gtest accepts.
inline std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

/// Element i of an array of numbers.
inline double elementOf(const Array &array, int64_t i) {
  auto load = [&](auto zero) {
    decltype(zero) value;
    std::memcpy(&value, array.data + i * sizeof(value), sizeof(value));
    return value;
  };
  switch (array.type) {
  case DataType::Float32:
    return load(float());
  case DataType::Float64:
    return load(double());
  case DataType::Float16:
    return halfToFloat(load(uint16_t()));
  case DataType::BFloat16:
    return bfloatToFloat(load(uint16_t()));
  case DataType::Int64:
    return static_cast<double>(load(int64_t()));
  case DataType::Int32:
    return load(int32_t());
  case DataType::Int16:
    return load(int16_t());
  case DataType::Int8:
    return load(int8_t());
  case DataType::UInt16:
    return load(uint16_t());
  case DataType::UInt32:
    return load(uint32_t());
  case DataType::UInt64:
    return static_cast<double>(load(uint64_t()));
  case DataType::UInt8:
  case DataType::Bool:
    return load(uint8_t());
  default:
    ADD_FAILURE() << array.name << ": element type not read by this test";
    return 0;
  }
}

} // namespace ortc::engine::test
