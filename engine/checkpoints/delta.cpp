// The difference of two checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/checkpoints/delta.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/checkpoints/checkpoint_tensors.h"
#include "engine/report.h"
#include "runtime/delta/quantize.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace ortc::engine {

/// Blocks of rounded differences, and their scales behind them.
static void appendInt8(const OutputArray &of, const std::vector<double> &differences,
                       std::vector<OutputArray> &arrays, std::vector<OutputArray> &scales) {
  std::vector<float> narrow(differences.begin(), differences.end());
  OutputArray rounded{of.name, DataType::Int8, of.shape, std::vector<uint8_t>(narrow.size())};
  int64_t blocks = int64_t((narrow.size() + delta::kBlock - 1) / delta::kBlock);
  OutputArray scale{of.name + delta::kScales, DataType::Float32, {blocks}, {}};
  for (size_t first = 0; first < narrow.size(); first += delta::kBlock) {
    auto count = uint32_t(std::min<size_t>(delta::kBlock, narrow.size() - first));
    float unit = delta::quantize(narrow.data() + first, count,
                                 reinterpret_cast<int8_t *>(rounded.data.data()) + first);
    const auto *bytes = reinterpret_cast<const uint8_t *>(&unit);
    scale.data.insert(scale.data.end(), bytes, bytes + sizeof unit);
  }
  arrays.push_back(std::move(rounded));
  scales.push_back(std::move(scale));
}

/// The difference of one tensor, of a type that holds it.
static Status subtract(const OutputArray &before, const DataSource &trained, std::vector<double> &result,
                       bool isInt8) {
  std::string where = trained.getPath() + ": '" + before.name + "'";
  if (!trained.has(before.name))
    return Status::refusal(trained.getPath() + ": has no '" + before.name +
                           "', which the base has; it is of another model");
  Array after;
  ORTC_TRY(trained.load(before.name, after));
  if (after.type != before.type || after.shape != before.shape)
    return Status::refusal(where + " is " + getTypeName(after.type) + " " + formatShape(after.shape) +
                           ", but in the base it is " + getTypeName(before.type) + " " +
                           formatShape(before.shape) + "; it is of another model");
  size_t count = before.data.size() / getElementBytes(before.type);
  result = toDoubles(after.type, after.data, count);
  std::vector<double> old = toDoubles(before.type, before.data.data(), count);
  double most = before.type == DataType::Float64 && !isInt8 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  for (size_t i = 0; i < count; ++i) {
    result[i] -= old[i];
    if (!(std::abs(result[i]) <= most))
      return Status::failure(where + ": the change of element " + std::to_string(i) +
                             " is not finite; a training that has gone astray is not worth sending");
  }
  return Status();
}

Status makeDelta(const DeltaOptions &options) {
  std::vector<NamedFile> inputs = listArtifactFiles(options.base);
  inputs.insert(inputs.end(), {{"BASE", options.base}, {"NEW", options.trained}});
  ORTC_TRY(checkOutputs(inputs, {{"-o", options.output}}));
  std::string place;
  ORTC_TRY(resolveOutput(options.output, place));
  Base base;
  ORTC_TRY(readBase(options.base, base));
  std::unique_ptr<DataSource> trained;
  ORTC_TRY(openTensors(options.trained, CheckpointKind::Checkpoint, trained));
  std::vector<OutputArray> arrays, scales;
  for (const OutputArray &before : base.arrays) {
    if (!base.changing.count(before.name))
      continue;
    if (base.find(before.name + delta::kScales))
      return Status::refusal(base.path + ": has tensors '" + before.name + "' and '" + before.name +
                             delta::kScales + "', which is the name of the scales of a delta; rename one");
    std::vector<double> differences;
    ORTC_TRY(subtract(before, *trained, differences, options.int8));
    if (options.int8) {
      appendInt8(before, differences, arrays, scales);
      continue;
    }
    DataType type = before.type == DataType::Float64 ? DataType::Float64 : DataType::Float32;
    arrays.push_back({before.name, type, before.shape, fromDoubles(type, differences)});
  }
  if (arrays.empty())
    return Status::refusal(base.path + ": has no tensor that a training changes");
  arrays.insert(arrays.end(), scales.begin(), scales.end());
  ORTC_TRY(writeTensors(options.output, arrays, {{"ortc.base", base.identify(base.changing)}},
                        CheckpointKind::Delta));
  size_t bytes = 0;
  for (const OutputArray &array : arrays)
    bytes += array.data.size();
  Reporter(options.quiet)
      .line(options.output + ": the change of " +
            formatCount(int64_t(arrays.size() - scales.size()), "tensor") + ", " + formatBytes(bytes));
  return Status();
}

} // namespace ortc::engine
