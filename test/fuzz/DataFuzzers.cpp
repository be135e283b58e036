// Data files: every array that is in one, read whole and converted to what graphs want.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/csv.h"
#include "engine/data/tar.h"
#include "engine/data/tokens.h"
#include "support/Convert.h"
#include "support/Npy.h"
#include "test/fuzz/Target.h"

#include <vector>

namespace ortc::fuzz {
namespace {

void useArray(const Array &array) {
  size_t bytes = 0;
  demand(countBytes(array.shape, array.type, bytes) && bytes == array.bytes,
         "an array has other bytes than its shape");
  touch(array.data, array.bytes);
  size_t element = getElementBytes(array.type);
  size_t count = element ? array.bytes / element : 0;
  for (DataType type :
       {DataType::Float32, DataType::Int64, DataType::Bool, DataType::Float16, DataType::UInt8}) {
    Conversion conversion;
    if (!planConversion(array, type, "array", conversion).isOk() || !conversion.convert)
      continue;
    std::vector<uint8_t> converted(count * getElementBytes(type));
    conversion.convert(array.data, converted.data(), count);
  }
}

bool useSource(const engine::DataSource &source) {
  bool isTaken = false;
  for (const std::string &name : source.getNames()) {
    demand(source.has(name), "an array that is listed is not there");
    Array array;
    if (!source.load(name, array).isOk())
      continue;
    useArray(array);
    isTaken = true;
  }
  return isTaken;
}

} // namespace

bool fuzzNpz(Input file) {
  MemoryFile onDisk(file);
  std::unique_ptr<engine::DataSource> source;
  if (engine::openNpz(onDisk.getPath(), source).isOk())
    return useSource(*source);
  return false;
}

bool fuzzSafetensors(Input file) {
  MemoryFile onDisk(file);
  std::unique_ptr<engine::DataSource> source;
  if (engine::openSafetensors(onDisk.getPath(), source).isOk())
    return useSource(*source);
  return false;
}

bool fuzzIdx(Input file) {
  MemoryFile onDisk(file);
  std::unique_ptr<engine::DataSource> source;
  if (engine::openIdx(onDisk.getPath(), onDisk.getPath(), source).isOk())
    return useSource(*source);
  return false;
}

bool fuzzTar(Input file) {
  MemoryFile onDisk(file);
  std::unique_ptr<engine::DataSource> source;
  if (engine::openTar(onDisk.getPath(), source).isOk())
    return useSource(*source);
  return false;
}

bool fuzzTable(Input file) {
  MemoryFile onDisk(file);
  bool isTaken = false;
  for (const engine::DataSpec::Options &options : {engine::DataSpec::Options(), {{"x", "*"}}}) {
    std::unique_ptr<engine::DataSource> source;
    if (engine::openCsv(onDisk.getPath(), options, source).isOk())
      isTaken |= useSource(*source);
  }
  return isTaken;
}

bool fuzzTokens(Input file) {
  MemoryFile onDisk(file);
  engine::TokenOptions options;
  options.length = 3;
  std::unique_ptr<engine::DataSource> source;
  if (engine::openTokens(onDisk.getPath(), options, source).isOk())
    return useSource(*source);
  return false;
}

bool fuzzNpy(Input file) {
  auto exact = std::make_shared<std::vector<uint8_t>>(file.begin(), file.end());
  Array array;
  if (!parseNpy(exact->data(), exact->size(), "array", exact, array).isOk())
    return false;
  useArray(array);
  return true;
}

} // namespace ortc::fuzz
