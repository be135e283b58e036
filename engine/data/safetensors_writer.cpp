// Writes safetensors files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/writers.h"
#include "support/AtomicFile.h"
#include "support/Text.h"

namespace ortc::engine {

static const char *getTypeCode(DataType type) {
  switch (type) {
  case DataType::Float32:
    return "F32";
  case DataType::UInt8:
    return "U8";
  case DataType::Int8:
    return "I8";
  case DataType::UInt16:
    return "U16";
  case DataType::Int16:
    return "I16";
  case DataType::Int32:
    return "I32";
  case DataType::Int64:
    return "I64";
  case DataType::Bool:
    return "BOOL";
  case DataType::Float16:
    return "F16";
  case DataType::Float64:
    return "F64";
  case DataType::UInt32:
    return "U32";
  case DataType::UInt64:
    return "U64";
  case DataType::BFloat16:
    return "BF16";
  case DataType::None:
    break;
  }
  return "";
}

Status writeSafetensors(const std::string &path, const std::vector<OutputArray> &arrays,
                        const std::map<std::string, std::string> &metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata)
      header += (header.back() == '{' ? "" : ",") + formatJsonString(key) + ":" + formatJsonString(value);
    header += "}";
  }
  uint64_t offset = 0;
  for (const OutputArray &array : arrays) {
    header += (header.size() == 1 ? "" : ",") + formatJsonString(array.name) + ":{\"dtype\":\"" +
              getTypeCode(array.type) + "\",\"shape\":[";
    for (size_t i = 0; i < array.shape.size(); ++i)
      header += (i ? "," : "") + std::to_string(array.shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(offset + array.data.size()) + "]}";
    offset += array.data.size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  AtomicFile file(path);
  ORTC_TRY(file.open());
  uint64_t length = header.size();
  ORTC_TRY(file.write(&length, sizeof(length)));
  ORTC_TRY(file.write(header));
  for (const OutputArray &array : arrays)
    ORTC_TRY(file.write(array.data.data(), array.data.size()));
  return file.commit();
}

} // namespace ortc::engine
