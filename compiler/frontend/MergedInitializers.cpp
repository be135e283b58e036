// Parameters stored once for many.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/MergedInitializers.h"

#include "compiler/frontend/CopiedInitializers.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "support/Lists.h"
#include "support/Plural.h"

#include <algorithm>
#include <map>
#include <set>

namespace ortc::frontend {

/// Identity nodes that stand for a parameter which the exporter found equal to another one.
static std::vector<int> findMergedParameters(const InitializerGraph &g) {
  std::vector<int> nodes;
  for (int n = 0; n < g.graph.node_size(); ++n) {
    const auto &node = g.graph.node(n);
    if (!g.isIdentity(node) || g.outputs.count(node.output(0)) || g.initializers.count(node.output(0)))
      continue;
    const proto::TensorProto *source = g.find(node.input(0));
    if (source && InitializerGraph::isFloat(*source) && isParameterName(node.output(0)))
      nodes.push_back(n);
  }
  return nodes;
}

/// One input of a node that reads an initializer in place of a parameter, or buffer, of that name; a bias of
/// so many zeros that the node has lost.
struct Replacement {
  int node, input;
  std::string name;
  int64_t zeros = 0;
  bool isFolded = false; ///< it reads what was folded from a parameter
};

/// How many elements the bias of a convolution or Gemm has that has lost it: exporters drop biases of zeros. Else 0.
static int64_t countLostBias(const InitializerGraph &g, const proto::NodeProto &node) {
  bool isConv = g.isNode(node, "Conv"), isTransposed = g.isNode(node, "ConvTranspose");
  if (!(isConv || isTransposed || g.isNode(node, "Gemm")) || node.input_size() != 2)
    return 0;
  const proto::TensorProto *weight = g.find(node.input(1));
  if (!weight || weight->dims_size() < 2 || !InitializerGraph::isFloat(*weight))
    return 0;
  int64_t group = 1, transB = 0;
  for (const auto &attribute : node.attribute()) {
    group = attribute.name() == "group" ? attribute.i() : group;
    transB = attribute.name() == "transB" ? attribute.i() : transB;
  }
  int64_t count = weight->dims(isConv || (!isTransposed && transB) ? 0 : 1), elements = 1;
  if (isTransposed &&
      (group < 1 || weight->dims(0) % group != 0 || __builtin_mul_overflow(count, group, &count)))
    return 0;
  for (int64_t dim : weight->dims())
    if (__builtin_mul_overflow(elements, dim, &elements))
      return 0;
  return count <= elements ? count : 0; // else the weight has no elements
}

/// Where the operation of the exported program took parameters that the file has lost, and the nodes read as
/// many others in their place: exporters merge equal ones.
static std::vector<Replacement> findReplaced(const InitializerGraph &g) {
  std::vector<std::string> names = findLostParameters(g.graph, /*buffers=*/true);
  std::set<std::string> lost(names.begin(), names.end()), present = listNames(g.graph);
  for (const std::string &name : present) // a result may have it
    lost.erase(name);
  if (lost.empty())
    return {};
  std::map<std::string, InitializerOrigin> origins = findOrigins(g.graph);
  std::vector<TracedOperation> operations = findOperations(g.graph);
  std::map<std::string, std::vector<int>> nodes; // by operation
  for (int n = 0; n < g.graph.node_size(); ++n)
    nodes[operations[n].text].push_back(n);
  std::vector<Replacement> result;
  for (const auto &[text, members] : nodes) {
    const std::vector<std::string> &taken = operations[members.front()].parameters;
    std::set<std::string> takenNames(taken.begin(), taken.end());
    std::vector<std::string> missing;
    for (const std::string &name : taken)
      if (lost.count(name))
        missing.push_back(name);
    std::vector<Replacement> found;
    for (int n : members)
      for (int i = 0; i < g.graph.node(n).input_size(); ++i) {
        auto origin = origins.find(g.graph.node(n).input(i));
        if (origin == origins.end())
          continue;
        auto takes = [&](const std::string &name) { return takenNames.count(name) != 0; };
        const std::set<std::string> &folded = origin->second.parameters;
        bool isOther = origin->second.foldedFrom.empty() ? (origin->second.origin == Origin::parameter ||
                                                            origin->second.origin == Origin::buffer) &&
                                                               !takes(origin->first)
                                                         : folded.size() == 1 && !takes(*folded.begin());
        if (isOther)
          found.push_back({n, i, "", 0, !origin->second.foldedFrom.empty()});
      }
    if (found.size() + 1 == missing.size() && taken.size() == 2 && missing.back() == taken[1] &&
        members.size() == 1)
      if (int64_t count = countLostBias(g, g.graph.node(members[0]))) {
        result.push_back({members[0], 2, missing.back(), count});
        missing.pop_back();
      }
    if (found.size() > missing.size()) // a result of other operations, folded
      found.erase(
          std::remove_if(found.begin(), found.end(), [](const Replacement &each) { return each.isFolded; }),
          found.end());
    if (found.size() != missing.size())
      continue;
    for (size_t i = 0; i < found.size(); ++i)
      found[i].name = missing[i];
    result.insert(result.end(), found.begin(), found.end());
  }
  // A name stands for one initializer, or for none.
  std::map<std::string, std::set<std::string>> sources;
  for (const Replacement &each : result)
    sources[each.name].insert(each.zeros ? formatCount(each.zeros, "zero", "zeros")
                                         : g.graph.node(each.node).input(each.input));
  result.erase(std::remove_if(result.begin(), result.end(),
                              [&](const Replacement &each) { return sources[each.name].size() > 1; }),
               result.end());
  return result;
}

static void restoreReplaced(proto::GraphProto &graph, const InitializerGraph &g,
                            const std::vector<Replacement> &replaced, SharingReport &report) {
  std::set<std::string> known;
  std::vector<std::string> added, dropped;
  NewNames names(graph);
  std::map<std::string, std::string> folded; // the initializers of parameters that were folded
  std::map<std::string, int> values;
  for (int i = 0; i < g.graph.value_info_size(); ++i)
    values.insert({g.graph.value_info(i).name(), i});
  for (const Replacement &each : replaced) {
    if (each.zeros) {
      auto *node = graph.mutable_node(each.node);
      if (known.insert(each.name).second) {
        dropped.push_back(each.name);
        proto::TensorProto bias;
        bias.set_name(each.name);
        bias.set_data_type(g.find(node->input(1))->data_type());
        bias.add_dims(each.zeros);
        bias.set_raw_data(
            std::string(static_cast<size_t>(each.zeros) * dataTypeBytes(bias.data_type()), '\0'));
        *graph.add_initializer() = std::move(bias);
      }
      node->add_input(each.name);
      continue;
    }
    std::string &input = *graph.mutable_node(each.node)->mutable_input(each.input);
    if (each.isFolded) { // it has the file's layout, and so not the parameter's name
      auto [own, isNew] = folded.insert({each.name, ""});
      if (isNew) {
        own->second = names.make(nameOf(g.graph.node(each.node)) + "." + input);
        proto::TensorProto copy = *g.find(input);
        copy.set_name(own->second);
        auto *entry = copy.add_metadata_props();
        entry->set_key("pkg.onnxscript.optimizer.folded_from");
        entry->set_value("['" + each.name + "']");
        *graph.add_initializer() = std::move(copy);
        added.push_back(each.name);
      }
      input = own->second;
      continue;
    }
    if (known.insert(each.name).second) {
      added.push_back(each.name);
      proto::TensorProto copy = *g.find(input);
      copy.set_name(each.name);
      *graph.add_initializer() = std::move(copy);
      if (auto value = values.find(input); value != values.end()) { // with its origin
        *graph.add_value_info() = g.graph.value_info(value->second);
        graph.mutable_value_info(graph.value_info_size() - 1)->set_name(each.name);
      }
    }
    input = each.name;
  }
  if (!dropped.empty())
    report.notes.push_back(std::to_string(dropped.size()) +
                           (dropped.size() == 1 ? " bias of zeros that" : " biases of zeros that") +
                           " the exporter had dropped " + (dropped.size() == 1 ? "is" : "are") +
                           " there again: " + quoteSome(dropped, 3));
  if (!added.empty())
    report.notes.push_back(
        std::to_string(added.size()) + (added.size() == 1 ? " parameter that" : " parameters that") +
        " the exporter had merged with equal ones " + (added.size() == 1 ? "is its own" : "are their own") +
        " again: " + quoteSome(added, 3));
}

static void restoreIdentities(proto::GraphProto &graph, const InitializerGraph &g,
                              const std::vector<int> &nodes, SharingReport &report) {
  std::vector<std::string> names;
  for (int n : nodes) {
    const auto &node = g.graph.node(n);
    names.push_back(node.output(0));
    proto::TensorProto copy = *g.find(node.input(0));
    copy.set_name(node.output(0));
    *graph.add_initializer() = std::move(copy);
  }
  removeIf(*graph.mutable_node(), [&](const proto::NodeProto &, int n) {
    return std::binary_search(nodes.begin(), nodes.end(), n);
  });
  const auto &first = g.graph.node(nodes[0]);
  report.notes.push_back(
      std::to_string(nodes.size()) + (nodes.size() == 1 ? " parameter that" : " parameters that") +
      " the exporter had merged with an equal one " + (nodes.size() == 1 ? "is its own" : "are their own") +
      " again: " + quoteSome(names, 3) + "; if the model ties them: --tie " + first.output(0) + "=" +
      first.input(0));
}

Status restoreMerged(std::shared_ptr<const Model> &model, const SharingOptions &options,
                     SharingReport &report) {
  InitializerGraph graph(*model);
  std::vector<int> merged = findMergedParameters(graph), apart = findMergedCopies(graph);
  std::vector<Replacement> replaced = findReplaced(graph);
  if (merged.empty() && replaced.empty() && apart.empty())
    return {};
  merged.insert(merged.end(), apart.begin(), apart.end());
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end()); // a name may be both
  std::shared_ptr<const Model> edited;
  SharingReport restored;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        if (!replaced.empty())
          restoreReplaced(*proto.mutable_graph(), graph, replaced, report);
        if (!merged.empty())
          restoreIdentities(*proto.mutable_graph(), graph, merged, restored);
      },
      edited));
  if (options.ties.empty()) // else the user knows
    report.notes.insert(report.notes.begin(), restored.notes.begin(), restored.notes.end());
  model = std::move(edited);
  return {};
}

} // namespace ortc::frontend
