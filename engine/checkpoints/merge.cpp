// The mean of checkpoints, and of deltas on their base.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "engine/checkpoints/checkpoint_tensors.h"
#include "engine/checkpoints/delta.h"
#include "engine/report.h"
#include "engine/session/tensor_roles.h"
#include "runtime/delta/quantize.h"
#include "support/Elements.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace ortc::engine {

using Sources = std::vector<std::unique_ptr<DataSource>>;

static Status checkWeights(const MergeOptions &options, std::vector<double> &weights) {
  weights = options.weights.empty() ? std::vector<double>(options.files.size(), 1) : options.weights;
  if (weights.size() != options.files.size())
    return Status::refusal("--weights has " + std::to_string(weights.size()) + " numbers for " +
                           formatCount(int64_t(options.files.size()), "file") + "; give one for each");
  for (double weight : weights)
    if (!std::isfinite(weight) || weight < 0)
      return Status::refusal("--weights: " + formatNumber(weight) +
                             " is no weight; the number of samples of a file is one");
  double largest = *std::max_element(weights.begin(), weights.end());
  if (largest == 0)
    return Status::refusal("--weights: all are 0, and their sum must be above that");
  // So that no sum of theirs is too large or too small; powers of two change no other bit.
  for (double &weight : weights)
    weight = std::ldexp(weight, -std::ilogb(largest));
  return Status();
}

/// That the type of a tensor has these numbers.
static Status checkResult(const std::string &name, DataType type, const std::vector<uint8_t> &data) {
  std::vector<double> values = toDoubles(type, data.data(), data.size() / getElementBytes(type));
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return Status::failure("'" + name + "': element " + std::to_string(i) + " of the result would be " +
                             formatNumber(values[i]) + ", which is beyond " + getTypeName(type) +
                             "; leave the file of a training that has gone astray out");
  return Status();
}

/// All have the same tensors, of the same types and shapes.
static Status checkAlike(const DataSource &first, const DataSource &other) {
  for (const auto &[a, b] : {std::pair{&first, &other}, {&other, &first}})
    for (const std::string &name : a->getNames())
      if (!b->has(name))
        return Status::refusal(b->getPath() + ": has no '" + name + "', which " + a->getPath() +
                               " has; they are of different models, or of different flags");
  for (const std::string &name : first.getNames()) {
    Array a, b;
    ORTC_TRY(first.describe(name, a));
    ORTC_TRY(other.describe(name, b));
    if (a.type != b.type || a.shape != b.shape)
      return Status::refusal(other.getPath() + ": '" + name + "' is " + getTypeName(b.type) + " " +
                             formatShape(b.shape) + ", but in " + first.getPath() + " it is " +
                             getTypeName(a.type) + " " + formatShape(a.shape) +
                             "; they are of different models");
    if (a.type == DataType::UInt8 && first.has(name + "_absmax"))
      return Status::refusal(first.getPath() + ": '" + name +
                             "' is an optimizer's state in bytes, of which there is no mean; merge what ortc "
                             "delta writes, which has no state, with --base");
  }
  return Status();
}

/// Adds the weighted elements of one file to `sums`.
static Status addWeighted(const std::string &where, const std::vector<double> &values, double weight,
                          std::vector<double> &sums) {
  sums.resize(values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      return Status::failure(where + ": element " + std::to_string(i) + " is " + formatNumber(values[i]) +
                             "; leave the file of a training that has gone astray out");
    sums[i] += weight * values[i];
  }
  return Status();
}

/// The largest element of all files, bit by bit of its type.
static std::vector<uint8_t> takeLargest(const std::vector<Array> &arrays) {
  std::vector<uint8_t> result(arrays[0].data, arrays[0].data + arrays[0].bytes);
  size_t size = getElementBytes(arrays[0].type);
  bool isUnsigned = arrays[0].type == DataType::UInt64;
  for (const Array &array : arrays)
    for (size_t at = 0; at < array.bytes; at += size) {
      int64_t mine = loadAsInteger(array.type, result.data() + at),
              other = loadAsInteger(array.type, array.data + at);
      if (isUnsigned ? uint64_t(other) > uint64_t(mine) : other > mine)
        std::memcpy(result.data() + at, array.data + at, size);
    }
  return result;
}

static Status average(const std::string &name, const Sources &sources, const std::vector<double> &weights,
                      OutputArray &result) {
  std::vector<Array> arrays(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    ORTC_TRY(sources[i]->load(name, arrays[i]));
  const Array &first = arrays.front();
  result = {name, first.type, first.shape, {first.data, first.data + first.bytes}};
  bool isEqual = std::all_of(arrays.begin(), arrays.end(), [&](const Array &array) {
    return std::equal(array.data, array.data + array.bytes, first.data);
  });
  if (isEqual)
    return isFloat(first.type) ? checkResult(name, first.type, result.data) : Status();
  if (!isFloat(first.type)) {
    result.data = takeLargest(arrays);
    return Status();
  }
  std::vector<double> sums;
  double all = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    ORTC_TRY(addWeighted(sources[i]->getPath() + ": '" + name + "'",
                         toDoubles(first.type, arrays[i].data, first.bytes / getElementBytes(first.type)),
                         weights[i], sums));
    all += weights[i];
  }
  for (double &sum : sums)
    sum /= all;
  result.data = fromDoubles(first.type, sums);
  return checkResult(name, first.type, result.data);
}

/// Entries that all files share; the position of a training, and the roles of tensors, as a whole or not at all.
static std::map<std::string, std::string> commonMetadata(const Sources &sources) {
  std::map<std::string, std::string> common = sources.front()->getMetadata();
  std::set<std::string> differing; ///< beginnings of keys
  for (const auto &source : sources)
    std::erase_if(common, [&](const auto &entry) {
      auto found = source->getMetadata().find(entry.first);
      bool differs = found == source->getMetadata().end() || found->second != entry.second;
      for (const char *whole : {"run.", kRoleKey})
        if (differs && entry.first.starts_with(whole))
          differing.insert(whole);
      return differs;
    });
  for (const std::string &whole : differing)
    std::erase_if(common, [&](const auto &entry) { return entry.first.starts_with(whole); });
  return common;
}

static Status openAll(const MergeOptions &options, CheckpointKind kind, Sources &sources) {
  for (const std::string &file : options.files)
    ORTC_TRY(openTensors(file, kind, sources.emplace_back()));
  return Status();
}

static Status mergeCheckpoints(const MergeOptions &options, const std::vector<double> &weights) {
  if (options.files.size() < 2)
    return Status::refusal("merge needs two checkpoints or more, or --base BASE with deltas");
  Sources sources;
  ORTC_TRY(openAll(options, CheckpointKind::Checkpoint, sources));
  for (const auto &source : sources)
    ORTC_TRY(checkAlike(*sources.front(), *source));
  std::vector<OutputArray> arrays;
  for (const std::string &name : sources.front()->getNames())
    ORTC_TRY(average(name, sources, weights, arrays.emplace_back()));
  return writeTensors(options.output, arrays, commonMetadata(sources), CheckpointKind::Checkpoint);
}

/// The differences that a delta has of one tensor.
static Status readDifferences(const DataSource &source, const OutputArray &of, std::vector<double> &values) {
  Array array, scales;
  std::string where = source.getPath() + ": '" + of.name + "'";
  ORTC_TRY(source.load(of.name, array));
  bool isInt8 = array.type == DataType::Int8;
  if (array.shape != of.shape || (!isInt8 && !isFloat(array.type)))
    return Status::refusal(where + " is " + getTypeName(array.type) + " " + formatShape(array.shape) +
                           ", but in the base it is " + getTypeName(of.type) + " " + formatShape(of.shape) +
                           "; it is of another model");
  size_t count = array.bytes / getElementBytes(array.type);
  if (!isInt8) {
    values = toDoubles(array.type, array.data, count);
    return Status();
  }
  size_t blocks = (count + delta::kBlock - 1) / delta::kBlock;
  std::string name = of.name + delta::kScales;
  if (!source.has(name))
    return Status::failure(source.getPath() + ": has no '" + name + "', the scales of its int8 tensor");
  ORTC_TRY(source.load(name, scales));
  if (scales.type != DataType::Float32 || scales.bytes != blocks * sizeof(float))
    return Status::failure(source.getPath() + ": '" + name + "' is " + getTypeName(scales.type) + " " +
                           formatShape(scales.shape) + ", but " + formatCount(int64_t(blocks), "block") +
                           " need a float32 each");
  values.resize(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = double(static_cast<int8_t>(array.data[i])) *
                loadAsDouble(scales.type, scales.data + i / delta::kBlock * sizeof(float));
  return Status();
}

/// The tensors that a delta is of.
static std::set<std::string> listChanged(const DataSource &source) {
  std::set<std::string> names;
  for (const std::string &name : source.getNames()) {
    size_t end = name.size() - std::min(name.size(), sizeof delta::kScales - 1);
    if (name.substr(end) != delta::kScales || !source.has(name.substr(0, end)))
      names.insert(name);
  }
  return names;
}

/// That the delta is of this base: it has the checksum of those tensors of its base that it has itself.
static Status checkBase(const DataSource &source, const std::set<std::string> &changed, const Base &base) {
  if (changed.empty())
    return Status::refusal(source.getPath() + ": has no changes");
  for (const std::string &name : changed)
    if (!base.changing.count(name))
      return Status::refusal(source.getPath() + ": changes '" + name + "', which is no trained tensor of " +
                             base.path + "; deltas are of what a training changes");
  auto found = source.getMetadata().find("ortc.base");
  if (found == source.getMetadata().end() || found->second != base.identify(changed))
    return Status::refusal(
        source.getPath() + ": is not a delta of " + base.path +
        ", but of another checkpoint or model; give the base that its training began with");
  return Status();
}

static Status mergeDeltas(const MergeOptions &options, const std::vector<double> &weights) {
  Sources sources;
  ORTC_TRY(openAll(options, CheckpointKind::Delta, sources));
  Base base;
  ORTC_TRY(readBase(options.base, base));
  std::set<std::string> changed = listChanged(*sources.front());
  for (const auto &source : sources) {
    std::set<std::string> own = listChanged(*source);
    ORTC_TRY(checkBase(*source, own, base));
    if (own != changed)
      return Status::refusal(source->getPath() + ": has changes of other tensors than " +
                             sources.front()->getPath() +
                             "; they are of artifacts that train different tensors");
  }
  for (OutputArray &array : base.arrays) {
    if (!changed.count(array.name))
      continue;
    std::vector<double> sums, values;
    double all = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      ORTC_TRY(readDifferences(*sources[i], array, values));
      ORTC_TRY(addWeighted(sources[i]->getPath() + ": '" + array.name + "'", values, weights[i], sums));
      all += weights[i];
    }
    values = toDoubles(array.type, array.data.data(), array.data.size() / getElementBytes(array.type));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += sums[i] / all;
    array.data = fromDoubles(array.type, values);
    ORTC_TRY(checkResult(array.name, array.type, array.data));
  }
  return writeTensors(options.output, base.arrays, base.metadata, CheckpointKind::Checkpoint);
}

Status mergeFiles(const MergeOptions &options) {
  std::vector<double> weights;
  ORTC_TRY(checkWeights(options, weights));
  std::vector<NamedFile> inputs;
  for (const std::string &file : options.files)
    inputs.push_back({"the file", file});
  if (!options.base.empty()) {
    for (const NamedFile &file : listArtifactFiles(options.base))
      inputs.push_back(file);
    inputs.push_back({"--base", options.base});
  }
  ORTC_TRY(checkOutputs(inputs, {{"-o", options.output}}));
  std::string place;
  ORTC_TRY(resolveOutput(options.output, place));
  ORTC_TRY(options.base.empty() ? mergeCheckpoints(options, weights) : mergeDeltas(options, weights));
  Reporter(options.quiet)
      .line(options.output + ": the mean of " +
            formatCount(int64_t(options.files.size()), options.base.empty() ? "checkpoint" : "delta"));
  return Status();
}

} // namespace ortc::engine
