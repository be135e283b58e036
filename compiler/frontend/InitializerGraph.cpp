// Initializers and their readers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/InitializerGraph.h"

#include "compiler/frontend/NodeOrder.h"

namespace ortc::frontend {

std::map<std::string, std::vector<Reader>> listReaders(const proto::GraphProto &graph) {
  std::map<std::string, std::vector<Reader>> readers;
  for (int n = 0; n < graph.node_size(); ++n)
    for (int i = 0; i < graph.node(n).input_size(); ++i)
      readers[graph.node(n).input(i)].push_back({n, i});
  return readers;
}

InitializerGraph::InitializerGraph(const Model &model) : model(model), graph(model.getProto().graph()) {
  for (const auto &function : model.getProto().functions())
    functions.insert({std::string(canonicalDomain(function.domain())), function.name(), function.overload()});
  std::set<std::string> copies;
  for (int i = 0; i < graph.initializer_size(); ++i)
    initializers[graph.initializer(i).name()] = i;
  for (const auto &node : graph.node())
    if (isIdentity(node) && initializers.count(node.input(0)))
      copies.insert(node.output(0));
  for (int n = 0; n < graph.node_size(); ++n)
    for (int i = 0; i < graph.node(n).input_size(); ++i)
      if (const std::string &name = graph.node(n).input(i); initializers.count(name) || copies.count(name))
        readers[name].push_back({n, i});
  for (const auto &output : graph.output())
    outputs.insert(output.name());
  for (std::string_view name : findNamesReadInside(graph))
    readInside.emplace(name);
}

bool InitializerGraph::isCall(const proto::NodeProto &node) const {
  return !functions.empty() &&
         functions.count({std::string(canonicalDomain(node.domain())), node.op_type(), node.overload()});
}

bool InitializerGraph::isNode(const proto::NodeProto &node, std::string_view type) const {
  return node.op_type() == type && canonicalDomain(node.domain()).empty() && !isCall(node);
}

bool InitializerGraph::isIdentity(const proto::NodeProto &node) const {
  return isNode(node, "Identity") && node.input_size() == 1 && node.output_size() == 1;
}

const proto::TensorProto *InitializerGraph::find(const std::string &name) const {
  auto found = initializers.find(name);
  return found == initializers.end() ? nullptr : &graph.initializer(found->second);
}

bool InitializerGraph::isFloat(const proto::TensorProto &tensor) {
  int type = tensor.data_type();
  return type == proto::TensorProto::FLOAT || type == proto::TensorProto::DOUBLE ||
         type == proto::TensorProto::FLOAT16 || type == proto::TensorProto::BFLOAT16;
}

std::string InitializerGraph::describeElements(const proto::TensorProto &tensor) const {
  TensorData data;
  if (!model.tensor(tensor, data).isOk() || data.bytes.empty())
    return "";
  auto width = static_cast<size_t>(dataTypeBytes(tensor.data_type()));
  std::string_view first = data.bytes.substr(0, width);
  for (size_t at = 0; at < data.bytes.size(); at += width)
    if (data.bytes.substr(at, width) != first)
      return "";
  if (first.find_first_not_of('\0') == std::string_view::npos)
    return "zeros";
  using namespace std::string_view_literals;
  bool isOne = first == "\0\0\x80\x3f"sv || first == "\0\0\0\0\0\0\xf0\x3f"sv ||
               first == (tensor.data_type() == proto::TensorProto::FLOAT16 ? "\0\x3c"sv : "\x80\x3f"sv);
  return isOne ? "ones" : "equal";
}

std::string nameOf(const proto::NodeProto &node) {
  return !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
}

} // namespace ortc::frontend
