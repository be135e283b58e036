// What else could be trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "compiler/report/SessionMemory.h"

#include <string>
#include <vector>

namespace ortc::report {

/// A subset of the tensors that a compilation trains, and what its plan takes.
struct TrainChoice : SessionMemory {
  std::string what; ///< "last 3 of 12 layers"
  std::vector<std::string> tensors;
};

/// Subsets of `trained` that people choose when memory is short: the last layer, the last quarter, the last
/// half of the layers, and tensors of one dimension (biases and norms). A layer is a node that reads a
/// trained tensor; "last" is in the order of the graph. Subsets that are empty, everything, or the same as
/// another one are left out.
std::vector<TrainChoice> listTrainChoices(const proto::GraphProto &graph,
                                          const std::vector<std::string> &trained);

/// The choices as a table, the first of which is what was asked for.
std::string describeTrainChoices(const std::vector<TrainChoice> &choices);

} // namespace ortc::report
