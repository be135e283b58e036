// Initializers and their readers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "compiler/frontend/onnx.pb.h"

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::frontend {

/// One place where a node of the graph reads a value.
struct Reader {
  int node, input;
};

/// The graph of a model with its initializers by name. Of branches and loop bodies it is known only what they
/// read. Holds references into the model.
class InitializerGraph {
public:
  explicit InitializerGraph(const Model &model);

  const proto::TensorProto *find(const std::string &name) const;
  /// A node of the default domain of that type; calls of a function of the model are none, whatever its name.
  bool isNode(const proto::NodeProto &node, std::string_view type) const;
  /// Whether a node calls a function of the model.
  bool isCall(const proto::NodeProto &node) const;
  /// An Identity of one value.
  bool isIdentity(const proto::NodeProto &node) const;
  static bool isFloat(const proto::TensorProto &tensor);
  /// "ones" or "zeros" where all elements are; "" otherwise, "equal" where they are something else.
  std::string describeElements(const proto::TensorProto &tensor) const;

  const Model &model;
  const proto::GraphProto &graph;
  std::map<std::string, int> initializers;
  std::map<std::string, std::vector<Reader>>
      readers; ///< of initializers, and of the Identity nodes behind them
  std::set<std::string> outputs;
  std::set<std::string> readInside; ///< values that branches and loop bodies read

private:
  std::set<std::array<std::string, 3>> functions; ///< domain, name, overload
};

/// The readers of every value of the graph, in its order.
std::map<std::string, std::vector<Reader>> listReaders(const proto::GraphProto &graph);

/// The name of a node, or of its first output.
std::string nameOf(const proto::NodeProto &node);

} // namespace ortc::frontend
