// Writes safetensors files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/safetensors_types.h"
#include "engine/data/writers.h"
#include "support/AtomicFile.h"
#include "support/Text.h"

namespace ortc::engine {

static std::string nameType(DataType type) {
  for (const auto &[name, known] : kSafetensorsTypes)
    if (known == type)
      return std::string(name);
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
              nameType(array.type) + "\",\"shape\":[";
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
