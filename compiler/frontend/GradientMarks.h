// Where a file says that gradients go otherwise than its operators say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX has no place for `detach()`, for the padding row of an embedding and for gradients that skip a rounding. Files
// say it in their metadata, and PyTorch's exporter in its notes on nodes (TracedMarks.h). Marks become nodes of this
// compiler's own operators (OwnOperators.h).
#pragma once

#include "compiler/frontend/Model.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ortc::frontend {

// Keys of a model's metadata; their values have one entry a line.

/// names of values: no gradient goes back through them
inline constexpr char kDetachedKey[] = "ortc.detached";
/// VALUE=ROW: of a Gather, the row that is not trained
inline constexpr char kPaddingKey[] = "ortc.padding";
/// OUTPUT=INPUT: the gradient of one goes to the other
inline constexpr char kStraightThroughKey[] = "ortc.straight_through";

/// Marked values, by their names in the file. Those of functions count where the graph, its branches
/// and loop bodies have none of that name.
struct GradientMarks {
  std::set<std::string> detached;
  std::map<std::string, int64_t> padding;
  std::map<std::string, std::string> straightThrough;
  /// Inputs of nodes, by the node's first output, that a detached value is read by; other readers get the value itself.
  std::set<std::pair<std::string, int>> detachedInputs;
  /// Outputs of the graph that are detached, while nodes read the value itself.
  std::set<std::string> detachedOutputs;

  bool isEmpty() const {
    return detached.empty() && padding.empty() && straightThrough.empty() && detachedInputs.empty() &&
           detachedOutputs.empty();
  }
};

/// Notes and warnings about marks.
struct MarkReport {
  std::vector<std::string> notes, warnings;
  std::vector<std::string> detached; ///< all that is, under the names of the list and of the exported program
};

/// Reads the marks of a model. Initializers are not among them: `constants` has those that are detached. Refuses lines
/// that are malformed, and a padding row of what is no lookup.
Status readGradientMarks(const Model &model, GradientMarks &marks, std::vector<std::string> &constants,
                         MarkReport &report);

/// Puts the nodes in: values keep their names, so that whoever reads one reads it as it is marked. Refuses gradients
/// that would go in a circle.
Status applyGradientMarks(std::shared_ptr<const Model> &model, const GradientMarks &marks);

} // namespace ortc::frontend
