// Who gives and who reads every value of a graph, also across branches and loop bodies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/ValueGraph.h"

#include "compiler/frontend/Model.h"

namespace ortc::frontend {

ValueGraph::ValueGraph(const proto::ModelProto &model, int64_t opset) : opset(opset) {
  for (const auto &function : model.functions())
    if (canonicalDomain(function.domain()).empty())
      functions.insert(function.name());
}

ValueGraph::ValueGraph(proto::GraphProto &graph, const proto::ModelProto &model)
    : ValueGraph(model, opsetOf(model.opset_import(), "")) {
  outputs = addGraph(graph, nullptr);
}

ValueGraph::ValueGraph(proto::FunctionProto &function, const proto::ModelProto &model)
    : ValueGraph(model, opsetOf(function.opset_import(), "")) {
  Scope scope{{}, nullptr};
  for (const std::string &input : function.input())
    add(scope, input);
  addNodes(*function.mutable_node(), scope);
  outputs = closeGraph(function.output(), scope, [](const std::string &name) { return name; });
}

bool ValueGraph::isNode(const Node &node, std::string_view type) const {
  return node.proto->op_type() == type && canonicalDomain(node.proto->domain()).empty() &&
         functions.count(node.proto->op_type()) == 0;
}

int ValueGraph::add(Scope &scope, std::string_view name, int node, int output) {
  values.push_back({name, node, output, nullptr, {}});
  return scope.names[name] = static_cast<int>(values.size()) - 1;
}

int ValueGraph::find(const Scope &scope, const std::string &name) {
  for (const Scope *level = &scope; level && !name.empty(); level = level->around)
    if (auto found = level->names.find(name); found != level->names.end())
      return found->second;
  return -1;
}

void ValueGraph::addNodes(NodeList &list, Scope &scope) {
  for (int place = 0; place < list.size(); ++place) {
    proto::NodeProto &proto = *list.Mutable(place);
    Node node{&proto, &list, place, {}, {}, {}};
    for (auto &attribute : *proto.mutable_attribute()) {
      std::vector<proto::GraphProto *> bodies;
      if (attribute.has_g())
        bodies.push_back(attribute.mutable_g());
      for (auto &body : *attribute.mutable_graphs())
        bodies.push_back(&body);
      for (proto::GraphProto *body : bodies) {
        std::vector<int> given = addGraph(*body, &scope);
        node.bodyOutputs.insert(node.bodyOutputs.end(), given.begin(), given.end());
      }
    }
    int number = static_cast<int>(nodes.size());
    for (int i = 0; i < proto.input_size(); ++i) {
      node.inputs.push_back(find(scope, proto.input(i)));
      if (node.inputs.back() >= 0)
        values[static_cast<size_t>(node.inputs.back())].uses.push_back({number, i});
    }
    for (int i = 0; i < proto.output_size(); ++i)
      node.outputs.push_back(proto.output(i).empty() ? -1 : add(scope, proto.output(i), number, i));
    nodes.push_back(std::move(node));
  }
}

std::vector<int> ValueGraph::addGraph(proto::GraphProto &graph, const Scope *around) {
  Scope scope{{}, around};
  for (const auto &input : graph.input())
    add(scope, input.name());
  for (const auto &tensor : graph.initializer())
    values[static_cast<size_t>(add(scope, tensor.name()))].initializer = &tensor;
  for (const auto &tensor : graph.sparse_initializer())
    add(scope, tensor.values().name());
  addNodes(*graph.mutable_node(), scope);
  return closeGraph(graph.output(), scope, [](const auto &output) { return output.name(); });
}

template <typename List, typename GetName>
std::vector<int> ValueGraph::closeGraph(const List &list, const Scope &scope, GetName getName) {
  std::vector<int> given;
  for (const auto &each : list)
    if (int value = find(scope, getName(each)); value >= 0) {
      values[static_cast<size_t>(value)].uses.push_back({-1, 0});
      given.push_back(value);
    }
  return given;
}

std::vector<bool> ValueGraph::findLive() const {
  std::vector<bool> live(nodes.size());
  std::vector<int> todo = outputs;
  while (!todo.empty()) {
    int value = todo.back();
    todo.pop_back();
    int node = value < 0 ? -1 : getValue(value).node;
    if (node < 0 || live[static_cast<size_t>(node)])
      continue;
    live[static_cast<size_t>(node)] = true;
    todo.insert(todo.end(), getNode(node).inputs.begin(), getNode(node).inputs.end());
    todo.insert(todo.end(), getNode(node).bodyOutputs.begin(), getNode(node).bodyOutputs.end());
  }
  return live;
}

} // namespace ortc::frontend
