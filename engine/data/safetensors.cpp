// safetensors: a JSON header and the bytes of the arrays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/data/data_source.h"
#include "engine/data/safetensors_types.h"
#include "support/Json.h"
#include "support/MappedFile.h"

namespace ortc::engine {
namespace {

using Json = nlohmann::json; // an object is a map: ordered_json looks for a key among all before it
constexpr uint64_t kMostHeaderBytes = 100'000'000; // the format's own limit

class SafetensorsSource final : public DataSource {
public:
  explicit SafetensorsSource(std::string path) : DataSource(std::move(path)) {}
  Status open();
  Status load(const std::string &name, Array &array) const override;

private:
  Status bad(const std::string &what) const { return Status::failure(path + ": " + what); }
  Status checkCoverage(uint64_t dataBytes) const;
  Status readMetadata(const Json &entry);
  Status readEntry(const std::string &name, const Json &entry, uint64_t dataBytes);

  struct Entry {
    std::string typeName;
    Shape shape;
    uint64_t begin, end; ///< from the start of the data
  };
  std::shared_ptr<const MappedFile> file;
  std::map<std::string, Entry> entries;
  uint64_t dataOffset = 0;
};

} // namespace

/// None for a type that nobody reads.
static DataType parseTypeName(std::string_view name) {
  for (const auto &[known, type] : kSafetensorsTypes)
    if (known == name)
      return type;
  return DataType::None;
}

Status SafetensorsSource::open() {
  ORTC_TRY(MappedFile::open(path, file));
  if (file->getBytes() < 8)
    return bad("is no safetensors file: it has " + std::to_string(file->getBytes()) + " bytes");
  uint64_t length = loadLittle<uint64_t>(file->getData());
  if (length > kMostHeaderBytes || length > file->getBytes() - 8)
    return bad("claims a header of " + std::to_string(length) + " bytes but " +
               std::to_string(file->getBytes() - 8) + " follow and " + std::to_string(kMostHeaderBytes) +
               " are allowed");
  dataOffset = 8 + length;
  // Entries nest three deep; the parser keeps one of two equal keys.
  std::string twice;
  Json header = parseJson(file->getText().substr(8, length), /*deepest=*/4, &twice);
  if (!header.is_object())
    return bad("has a header that is no JSON object of arrays");
  if (!twice.empty())
    return bad("has the key '" + twice + "' twice in its header");
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__") {
      ORTC_TRY(readMetadata(entry));
      continue;
    }
    ORTC_TRY(readEntry(name, entry, file->getBytes() - dataOffset));
  }
  return checkCoverage(file->getBytes() - dataOffset);
}

/// The format wants strings alone.
Status SafetensorsSource::readMetadata(const Json &entry) {
  if (!entry.is_object())
    return bad("has a '__metadata__' in its header that is no JSON object of strings");
  for (const auto &[key, value] : entry.items()) {
    if (!value.is_string())
      return bad("has the key '" + key + "' in the '__metadata__' of its header, which is no string");
    metadata[key] = value.get<std::string>();
  }
  return Status();
}

/// The format wants every byte to belong to one array.
Status SafetensorsSource::checkCoverage(uint64_t dataBytes) const {
  std::vector<std::tuple<uint64_t, uint64_t, std::string>> sorted;
  for (const auto &[name, entry] : entries)
    sorted.emplace_back(entry.begin, entry.end, name);
  std::sort(sorted.begin(), sorted.end());
  uint64_t end = 0;
  const std::string *before = nullptr;
  for (const auto &[begin, after, name] : sorted) {
    if (begin < end)
      return bad("arrays '" + *before + "' and '" + name + "' overlap at byte " + std::to_string(begin) +
                 " of the data");
    if (begin > end)
      return bad("bytes [" + std::to_string(end) + ", " + std::to_string(begin) +
                 ") of the data belong to no array");
    end = after;
    before = &name;
  }
  if (end != dataBytes)
    return bad("bytes [" + std::to_string(end) + ", " + std::to_string(dataBytes) +
               ") of the data belong to no array");
  return Status();
}

Status SafetensorsSource::readEntry(const std::string &name, const Json &entry, uint64_t dataBytes) {
  auto wrong = [&](const std::string &what) { return bad("array '" + name + "': " + what); };
  auto isCount = [](const Json &value) { return value.is_number_unsigned(); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2 ||
      !isCount(entry["data_offsets"][0]) || !isCount(entry["data_offsets"][1]))
    return wrong("its entry needs dtype, shape and two data_offsets");
  Entry parsed{entry["dtype"], {}, entry["data_offsets"][0], entry["data_offsets"][1]};
  for (const Json &size : entry["shape"]) {
    if (!isCount(size) || size.get<uint64_t>() > uint64_t(INT64_MAX) || parsed.shape.size() == 32)
      return wrong("its shape is not a list of at most 32 whole numbers");
    parsed.shape.push_back(size);
  }
  if (parsed.begin > parsed.end || parsed.end > dataBytes)
    return wrong("lies at [" + std::to_string(parsed.begin) + ", " + std::to_string(parsed.end) + ") of " +
                 std::to_string(dataBytes) + " bytes of data");
  names.push_back(name);
  entries.emplace(name, std::move(parsed)); // no key is there twice
  return Status();
}

Status SafetensorsSource::load(const std::string &name, Array &array) const {
  auto found = entries.find(name);
  if (found == entries.end())
    return bad("has no array '" + name + "'");
  const Entry &entry = found->second;
  auto wrong = [&](const std::string &what) { return bad("array '" + name + "': " + what); };
  array.name = name;
  array.type = parseTypeName(entry.typeName);
  if (array.type == DataType::None)
    return wrong("has elements of type '" + entry.typeName +
                 "', which is not read; convert it to F32 or I64");
  array.shape = entry.shape;
  if (!countBytes(array.shape, array.type, array.bytes))
    return wrong("has shape " + formatShape(array.shape) + ", whose size overflows");
  if (array.bytes != entry.end - entry.begin)
    return wrong("has shape " + formatShape(array.shape) + " of " + getTypeName(array.type) + ", which is " +
                 std::to_string(array.bytes) + " bytes, but holds " +
                 std::to_string(entry.end - entry.begin));
  array.data = file->getData() + dataOffset + entry.begin;
  array.owner = array.file = file;
  return Status();
}

Status openSafetensors(const std::string &path, std::unique_ptr<DataSource> &source) {
  auto opened = std::make_unique<SafetensorsSource>(path);
  ORTC_TRY(opened->open());
  source = std::move(opened);
  return Status();
}

} // namespace ortc::engine
