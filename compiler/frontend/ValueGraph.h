// Who gives and who reads every value of a graph, also across branches and loop bodies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ortc::frontend {

using NodeList = google::protobuf::RepeatedPtrField<proto::NodeProto>;

/// The nodes of a graph and of the graphs in their attributes, those of a body before the node that it belongs to, with
/// their values numbered. Holds pointers into the graph; an edit ends its use.
class ValueGraph {
public:
  struct Use {
    int node; ///< -1: it is an output, of its graph or of one inside
    int input;
  };
  struct Value {
    std::string_view name;
    int node = -1, output = 0; ///< what gives it; -1: an input, an initializer, or nothing
    const proto::TensorProto *initializer = nullptr;
    std::vector<Use> uses;
  };
  struct Node {
    const proto::NodeProto *proto;
    NodeList *home; ///< the list that it stands in
    int place;
    std::vector<int> inputs, outputs; ///< values; -1: absent
    std::vector<int> bodyOutputs;
  };

  ValueGraph(proto::GraphProto &graph, const proto::ModelProto &model);
  ValueGraph(proto::FunctionProto &function, const proto::ModelProto &model);

  const std::vector<Node> &getNodes() const { return nodes; }
  const Node &getNode(int i) const { return nodes[static_cast<size_t>(i)]; }
  const Value &getValue(int i) const { return values[static_cast<size_t>(i)]; }
  int countValues() const { return static_cast<int>(values.size()); }
  /// Whether the node has that operator of the default domain; calls of a function of the model are none, whatever its
  /// name.
  bool isNode(const Node &node, std::string_view type) const;
  /// The version of the default domain.
  int64_t getOpset() const { return opset; }
  /// For every node whether an output of the whole needs what it gives.
  std::vector<bool> findLive() const;

private:
  /// Names of one graph; those of the graphs around it are seen through `around`.
  struct Scope {
    std::unordered_map<std::string_view, int> names;
    const Scope *around;
  };

  ValueGraph(const proto::ModelProto &model, int64_t opset);
  int add(Scope &scope, std::string_view name, int node = -1, int output = 0);
  static int find(const Scope &scope, const std::string &name);
  void addNodes(NodeList &list, Scope &scope);
  std::vector<int> addGraph(proto::GraphProto &graph, const Scope *around);
  /// Notes that these are outputs, and gives them.
  template <typename List, typename GetName>
  std::vector<int> closeGraph(const List &list, const Scope &scope, GetName getName);

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<int> outputs;
  std::set<std::string> functions; ///< that stand for operators of the default domain
  int64_t opset;
};

} // namespace ortc::frontend
