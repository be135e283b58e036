// Steps of the length that their samples need: bindings of an artifact that differ in one dimension.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/buckets.h"

#include <algorithm>
#include <map>

#include "support/Elements.h"
#include "support/Json.h"
#include "support/MappedFile.h"
#include "support/Text.h"

namespace ortc::engine {

using Json = nlohmann::json;

/// What symbols of the model a binding is compiled for, by the manifest.
using Dimensions = std::map<std::string, Json>;

Status Buckets::parse(const std::string &text, std::string &array) {
  constexpr std::string_view kKey = "length=";
  if (!text.starts_with(kKey) || text.size() == kKey.size())
    return Status::refusal(
        "'" + text + "' must be length=ARRAY, an array of the data with a length or a mask for every sample");
  array = text.substr(kKey.size());
  return Status();
}

static std::vector<Dimensions> readDimensions(const Artifact &artifact) {
  std::vector<Dimensions> result;
  Json parsed = parseJson(artifact.getManifest());
  if (!parsed.is_object() || !parsed["bindings"].is_array())
    return result;
  for (const Json &binding : parsed["bindings"]) {
    Dimensions &dimensions = result.emplace_back();
    if (binding.is_object() && binding.contains("dimensions") && binding["dimensions"].is_object())
      for (const auto &[name, value] : binding["dimensions"].items())
        dimensions[name] = value;
  }
  return result;
}

/// The symbols that do not have one size in all bindings.
static std::vector<std::string> findDifferences(const std::vector<Dimensions> &bindings) {
  std::map<std::string, bool> differs;
  for (const Dimensions &binding : bindings)
    for (const auto &[name, value] : binding)
      for (const Dimensions &other : bindings)
        if (auto found = other.find(name); found == other.end() || found->second != value)
          differs[name] = true;
  std::vector<std::string> names;
  for (const auto &[name, is] : differs)
    names.push_back(name);
  return names;
}

Status Buckets::create(const Artifact &artifact, Buckets &result) {
  result = Buckets();
  const std::string where = artifact.getPath() + ": ";
  std::vector<Dimensions> bindings = readDimensions(artifact);
  if (bindings.size() < 2)
    return Status::refusal(
        where + "has one binding, and --buckets chooses among several; compile it with --binding NAME "
                "--shape ... for every length");
  std::vector<std::string> differences = findDifferences(bindings);
  if (differences.size() != 1) {
    std::string names;
    for (const std::string &name : differences)
      names += (names.empty() ? "'" : ", '") + name + "'";
    return Status::refusal(where + "its bindings differ in " +
                           (names.empty() ? "no dimension" : "the dimensions " + names) +
                           ", and --buckets needs bindings that differ in one: that of the length");
  }
  result.dimension = differences[0];
  for (const Entry &entry : artifact.getEntries()) {
    if (entry.role != ORTC_ENTRY_TRAIN)
      continue;
    const Json size = entry.binding < bindings.size() ? bindings[entry.binding][result.dimension] : Json();
    if (!size.is_number_integer())
      return Status::refusal(where + "binding '" + entry.bindingName + "' has no size for '" +
                             result.dimension + "'; compile it with --shape " + result.dimension + "=N");
    result.buckets.push_back({size.get<int64_t>(), &entry});
  }
  if (result.buckets.empty())
    return artifact.findEntry(ORTC_ENTRY_TRAIN, "", result.buckets.emplace_back().entry);
  std::sort(result.buckets.begin(), result.buckets.end(), [](const Bucket &a, const Bucket &b) {
    return std::pair(a.length, a.entry->binding) < std::pair(b.length, b.entry->binding);
  });
  const Entry &largest = result.getLargest();
  for (const Bucket &bucket : result.buckets)
    for (size_t i = 0; i < largest.inputs.size(); ++i) {
      const InputSpec &whole = largest.inputs[i];
      bool isSame = bucket.entry->inputs.size() == largest.inputs.size() &&
                    bucket.entry->inputs[i].name == whole.name &&
                    bucket.entry->inputs[i].shape.size() == whole.shape.size();
      const Shape &shape = isSame ? bucket.entry->inputs[i].shape : whole.shape;
      bool fits = isSame && (shape.empty() || shape[0] == whole.shape[0]);
      for (size_t axis = 0; axis < shape.size(); ++axis)
        fits &= shape[axis] <= whole.shape[axis];
      if (!fits)
        return Status::refusal(where + "input '" + whole.name + "' is " + formatShape(shape) +
                               " in binding '" + bucket.entry->bindingName + "' and " +
                               formatShape(whole.shape) + " in '" + largest.bindingName +
                               "', and --buckets cuts other axes than the first alone");
    }
  return Status();
}

/// The place behind the last element of a row that is not zero.
static int64_t measure(const Array &mask, int64_t row, int64_t width) {
  size_t bytes = getElementBytes(mask.type);
  const uint8_t *first = mask.data + size_t(row * width) * bytes, *end = first + size_t(width) * bytes;
  while (end > first && end[-1] == 0)
    --end;
  return int64_t((size_t(end - first) + bytes - 1) / bytes);
}

/// Of the samples of one file.
Status Buckets::readLengths(const DataSource &source, const std::string &name, int64_t samples) {
  if (!source.has(name)) {
    std::string names;
    for (const std::string &each : source.getNames())
      names += (names.empty() ? "'" : ", '") + each + "'";
    return Status::failure(source.getPath() + ": has no array '" + name + "' for --buckets; it has " +
                           (names.empty() ? "none" : names));
  }
  const std::string where = source.getPath() + ": array '" + name + "'";
  Array array;
  ORTC_TRY(source.describe(name, array));
  bool isMask = array.shape.size() == 2 && array.shape[1] != 1; // else a column of lengths
  if (!isInteger(array.type) && array.type != DataType::Bool)
    return Status::failure(where + " is " + getTypeName(array.type) +
                           ", and lengths and masks of --buckets are integers");
  if (array.shape.empty() || array.shape.size() > 2 || array.shape[0] != samples)
    return Status::failure(where + " has shape " + formatShape(array.shape) +
                           ", and --buckets needs a length for each of " + formatCount(samples, "sample") +
                           ", or a row of a mask");
  if (!isMask && array.type == DataType::Bool)
    return Status::failure(where +
                           " is bool, and one boolean a sample is neither a length nor a mask of --buckets");
  if (isMask && array.shape[1] != buckets.back().length)
    return Status::failure(where + " has rows of " + std::to_string(array.shape[1]) +
                           ", and a mask for --buckets has " + dimension + "=" +
                           std::to_string(buckets.back().length) + ", that of the largest binding, '" +
                           getLargest().bindingName + "'");
  ORTC_TRY(source.load(name, array));
  size_t bytes = getElementBytes(array.type);
  size_t before = lengths.size();
  lengths.resize(before + size_t(samples));
  auto read = [&] {
    for (int64_t i = 0; i < samples; ++i)
      lengths[before + size_t(i)] = isMask ? measure(array, i, array.shape[1])
                                           : loadAsInteger(array.type, array.data + size_t(i) * bytes);
  };
  ORTC_TRY(array.file ? array.file->read(read) : (read(), Status()));
  auto show = [&](int64_t length) { // the bits of an uint64 are kept as they are
    return array.type == DataType::UInt64 ? std::to_string(uint64_t(length)) : std::to_string(length);
  };
  for (size_t i = before; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > buckets.back().length)
      return Status::failure(
          where + " has length " + show(lengths[i]) + " at sample " + std::to_string(i - before) +
          ", but the largest binding, '" + getLargest().bindingName + "', has " + dimension + "=" +
          std::to_string(buckets.back().length) + "; compile a larger one, or cut the samples");
  return Status();
}

Status Buckets::readLengths(const DataSource &source, const std::string &name, const Batches &data) {
  if (!data.isBatch())
    return Status::failure(source.getPath() +
                           ": rows of its arrays are no samples, and --buckets needs a length "
                           "for every sample");
  lengths.clear();
  std::shared_ptr<const Shards> shards = source.getShards();
  for (size_t shard = 0; shard < (shards ? shards->size() : 1); ++shard) {
    std::unique_ptr<DataSource> opened;
    if (shards)
      ORTC_TRY(shards->open(shard, opened));
    ORTC_TRY(readLengths(shards ? *opened : source, name, data.getSamples(shard)));
  }
  for (size_t i = 0; i < getLargest().inputs.size(); ++i)
    if (!data.canCut(i))
      return Status::failure(source.getPath() + ": the array for input '" + getLargest().inputs[i].name +
                             "' has another shape than its " + formatShape(getLargest().inputs[i].shape) +
                             ", and --buckets cuts arrays of the input's own shape alone");
  return Status();
}

const Entry &Buckets::choose(const Batches &data, int64_t slice, const Order *order) const {
  int64_t longest = 0;
  for (int64_t row = 0; row < data.getBatch(); ++row)
    longest = std::max(longest, lengths[size_t(data.getItem(slice, row, order))]);
  return *std::find_if(buckets.begin(), buckets.end(), [&](const Bucket &each) {
            return each.length >= longest;
          })->entry;
}

} // namespace ortc::engine
