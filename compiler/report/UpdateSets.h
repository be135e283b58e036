// What could be trained where memory is short.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "compiler/report/SessionMemory.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ortc::report {

/// Values of `--train`, which together name what is trained, and what a session takes with them.
struct UpdateSet : SessionMemory {
  std::string what;               ///< "last 3 of 12 layers, 1/4 of the channels"
  std::vector<std::string> train; ///< empty: what was asked for
  size_t tensors = 0;
  int64_t values = 0; ///< trained elements
  int64_t flops = 0;  ///< floating-point operations of a training step

  uint64_t getBytes() const { return persistent + transient; }
};

/// The sets that `ortc plan --fit` tries, beside all of `trained`: the last k layers for each k (of more than 16
/// layers, for some), biases and norms, and halves, quarters and eighths of the channels of the last k layers. A layer
/// is a node that reads a trained tensor of more than one dimension, with what is trained behind it up to the next one.
/// `hasChannels`: whether a part of a tensor can be trained; others are trained whole.
std::vector<UpdateSet> listUpdateSets(const proto::GraphProto &graph, const std::vector<std::string> &trained,
                                      const std::function<bool(const std::string &)> &hasChannels);

/// The one of at most `budget` bytes that trains most values, of several the smallest; null where none fits.
const UpdateSet *findBest(const std::vector<UpdateSet> &sets, uint64_t budget);

/// The sets as a table, and the flags of each.
std::string describeUpdateSets(const std::vector<UpdateSet> &sets, uint64_t budget, const std::string &unit);
/// The same for plan.json.
nlohmann::ordered_json makeFitReport(const std::vector<UpdateSet> &sets, uint64_t budget);

} // namespace ortc::report
