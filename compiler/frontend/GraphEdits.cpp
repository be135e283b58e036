// What edits of a graph share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/GraphEdits.h"

#include <algorithm>

namespace ortc::frontend {

std::set<std::string> listNames(const proto::GraphProto &graph) {
  std::set<std::string> names;
  for (const auto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    names.insert(tensor.values().name());
  for (const auto &input : graph.input())
    names.insert(input.name());
  for (const auto &node : graph.node())
    names.insert(node.output().begin(), node.output().end());
  return names;
}

const proto::AttributeProto *findAttribute(const proto::NodeProto &node, std::string_view name) {
  for (const auto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t intOf(const proto::NodeProto &node, std::string_view name, int64_t otherwise) {
  const auto *attribute = findAttribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

void NewNames::addInside(const proto::GraphProto &graph) {
  inside.merge(listNames(graph));
  visitBodies(graph, [&](const proto::GraphProto &body) { addInside(body); });
}

NewNames::NewNames(const proto::GraphProto &graph) : taken(listNames(graph)) {
  visitBodies(graph, [&](const proto::GraphProto &body) { addInside(body); });
}

std::string NewNames::make(const std::string &name) {
  std::string result = name;
  for (size_t &ending = endings[name]; inside.count(result) || !taken.insert(result).second; ++ending)
    result = name + "_" + (ending ? std::to_string(ending) : "");
  return result;
}

void insertNodes(proto::GraphProto &graph, const std::map<int, std::vector<proto::NodeProto>> &nodes) {
  std::vector<proto::NodeProto> all;
  for (int n = 0; n <= graph.node_size(); ++n) {
    if (auto found = nodes.find(n); found != nodes.end())
      all.insert(all.end(), found->second.begin(), found->second.end());
    if (n < graph.node_size())
      all.push_back(std::move(*graph.mutable_node(n)));
  }
  graph.clear_node();
  for (proto::NodeProto &node : all)
    *graph.add_node() = std::move(node);
}

void dropData(proto::TensorProto &tensor) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
}

namespace {

class ReadRenamer {
public:
  explicit ReadRenamer(const std::map<std::string, std::string> &renames) : renames(renames) {}
  void run(proto::GraphProto &graph, bool isInside);

private:
  void enter(proto::GraphProto &body);
  void change(std::string &name) const {
    if (auto found = renames.find(name); found != renames.end() && !hidden.count(name))
      name = found->second;
  }

  const std::map<std::string, std::string> &renames;
  std::map<std::string, size_t> hidden; ///< graphs around with a value of their own of that name
};

} // namespace

void ReadRenamer::enter(proto::GraphProto &body) {
  std::vector<std::string> own;
  for (const std::string &name : listNames(body))
    if (renames.count(name))
      own.push_back(name);
  for (const std::string &name : own)
    ++hidden[name];
  run(body, /*isInside=*/true);
  for (const std::string &name : own)
    if (auto found = hidden.find(name); --found->second == 0)
      hidden.erase(found);
}

void ReadRenamer::run(proto::GraphProto &graph, bool isInside) {
  for (auto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      change(input);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        enter(*attribute.mutable_g());
      for (auto &body : *attribute.mutable_graphs())
        enter(body);
    }
  }
  if (isInside)
    for (auto &output : *graph.mutable_output())
      change(*output.mutable_name());
}

void renameReads(proto::GraphProto &graph, const std::map<std::string, std::string> &renames, bool isInside) {
  ReadRenamer(renames).run(graph, isInside);
}

} // namespace ortc::frontend
