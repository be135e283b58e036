//===- InitializerGraph.h - initializers and their readers ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "compiler/frontend/onnx.pb.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ortc::frontend {

/// One place where a node of the graph reads a value.
struct Reader {
  int node, input;
};

/// The graph of a model with its initializers by name. Nodes of branches and loop bodies are not looked at. Holds references
/// into the model.
class InitializerGraph {
public:
  explicit InitializerGraph(const Model &model);

  const proto::TensorProto *find(const std::string &name) const;
  static bool isFloat(const proto::TensorProto &tensor);
  /// "ones" or "zeros" where all elements are; "" otherwise, "equal" where they are something else.
  std::string describeElements(const proto::TensorProto &tensor) const;

  const Model &model;
  const proto::GraphProto &graph;
  std::map<std::string, int> initializers;
  std::map<std::string, std::vector<Reader>>
      readers; ///< of initializers, and of the Identity nodes behind them
  std::set<std::string> outputs;
};

/// The name of a node, or of its first output.
std::string nameOf(const proto::NodeProto &node);

/// A node of the default domain of that type.
bool isNode(const proto::NodeProto &node, const char *type);

/// A name that nothing in the graph has.
std::string makeUnique(std::string name, const std::set<std::string> &taken);
/// The names of initializers, inputs and results.
std::set<std::string> listNames(const proto::GraphProto &graph);

} // namespace ortc::frontend
