// The inference form of a graph that was exported for training.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operators of the standard have a form for each: BatchNormalization and Dropout. A mask that the graph draws
// itself (RandomMasks.h) has none. Compiled graphs have both of its values, in a node of this compiler's own operator
// ByMode (OwnOperators.h).
#pragma once

#include "compiler/frontend/Model.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ortc::frontend {

/// The findings.
struct InferenceReport {
  int64_t norms = 0, dropouts = 0;   ///< that were in training mode
  std::vector<std::string> masks;    ///< what gives a value with a drawn mask or slope, by its output
  std::vector<std::string> unscaled; ///< those of them whose mask has no scale
  std::vector<std::string> random;   ///< other nodes that draw random numbers for an output
};

/// Reads the data of a tensor of the model.
using ReadTensor = std::function<Status(const proto::TensorProto &, TensorData &)>;

/// Gives what has a drawn mask both values. `report` has nothing of norms and dropouts. Costs a copy of the model where
/// it draws numbers.
Status separateMasks(std::shared_ptr<const Model> &model, InferenceReport &report);

/// Makes the graph that predicts of one that trains. Parts that nothing needs are left out. `wide`: outputs of
/// masks that are larger than what they multiply. Without `read`, nodes that draw are left as they are.
void makeInference(proto::ModelProto &model, const ReadTensor &read, const std::set<std::string> &wide,
                   InferenceReport &report);

} // namespace ortc::frontend
