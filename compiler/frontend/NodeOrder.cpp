// Topological order of the nodes of a graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/NodeOrder.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/Model.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace ortc::frontend {

namespace {
using Nodes = google::protobuf::RepeatedPtrField<proto::NodeProto>;
using Names = std::unordered_set<std::string_view>;

/// Edges between nodes: users[i] read a value of node i; waiting[i] counts the values node i still lacks.
struct Dependencies {
  std::vector<std::vector<int>> producers, users;
};
} // namespace

/// Adds the names a graph takes from outside.
static void addFreeNames(const proto::GraphProto &graph, Names &free);

/// Adds the names a node reads, its graph attributes included.
static void addReadNames(const proto::NodeProto &node, Names &read) {
  for (const std::string &name : node.input())
    if (!name.empty())
      read.insert(name);
  for (const proto::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      addFreeNames(attribute.g(), read);
    for (const proto::GraphProto &graph : attribute.graphs())
      addFreeNames(graph, read);
  }
}

static void addFreeNames(const proto::GraphProto &graph, Names &free) {
  Names defined, read;
  for (const auto &input : graph.input())
    defined.insert(input.name());
  for (const auto &initializer : graph.initializer())
    defined.insert(initializer.name());
  for (const auto &initializer : graph.sparse_initializer())
    defined.insert(initializer.values().name());
  for (const proto::NodeProto &node : graph.node()) {
    defined.insert(node.output().begin(), node.output().end());
    addReadNames(node, read);
  }
  for (const auto &output : graph.output())
    read.insert(output.name());
  for (std::string_view name : read)
    if (!defined.count(name))
      free.insert(name);
}

std::unordered_set<std::string_view> findNamesReadInside(const proto::GraphProto &graph) {
  Names read;
  visitBodies(graph, [&](const proto::GraphProto &body) { addFreeNames(body, read); });
  return read;
}

static Dependencies findDependencies(const Nodes &nodes) {
  std::unordered_map<std::string_view, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &name : nodes[i].output())
      if (!name.empty())
        producer.emplace(name, i);
  Dependencies edges;
  edges.producers.resize(static_cast<size_t>(nodes.size()));
  edges.users.resize(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    Names read;
    addReadNames(nodes[i], read);
    std::vector<int> &list = edges.producers[static_cast<size_t>(i)];
    for (std::string_view name : read)
      if (auto found = producer.find(name); found != producer.end())
        list.push_back(found->second);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    for (int from : list)
      edges.users[static_cast<size_t>(from)].push_back(i);
  }
  return edges;
}

/// Follows producers among the nodes that were never ready, all of which depend on a cycle, until one comes
/// again.
static Status cycleError(const Nodes &nodes, const Dependencies &edges, const std::vector<int> &waiting) {
  int at = 0;
  while (!waiting[static_cast<size_t>(at)])
    ++at;
  std::vector<int> path;
  std::vector<bool> seen(waiting.size());
  while (!seen[static_cast<size_t>(at)]) {
    seen[static_cast<size_t>(at)] = true;
    path.push_back(at);
    const std::vector<int> &from = edges.producers[static_cast<size_t>(at)];
    at = *std::find_if(from.begin(), from.end(), [&](int p) { return waiting[static_cast<size_t>(p)] != 0; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::string text = "the graph has a cycle: " + describe(nodes[at]);
  constexpr size_t kShown = 8;
  for (size_t i = 1; i < path.size() && i < kShown; ++i)
    text += " needs " + describe(nodes[path[i]]);
  if (path.size() > kShown)
    text += " ... (" + std::to_string(path.size() - kShown) + " more)";
  return Status::refusal(text + " needs " + describe(nodes[at]));
}

Status sortNodes(Nodes &nodes) {
  Dependencies edges = findDependencies(nodes);
  std::vector<int> waiting;
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    waiting.push_back(static_cast<int>(edges.producers[static_cast<size_t>(i)].size()));
    if (!waiting.back())
      ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int user : edges.users[static_cast<size_t>(node)])
      if (--waiting[static_cast<size_t>(user)] == 0)
        ready.push(user);
  }
  if (order.size() != waiting.size())
    return cycleError(nodes, edges, waiting);
  if (std::is_sorted(order.begin(), order.end()))
    return {};
  std::vector<proto::NodeProto *> taken(order.size());
  nodes.ExtractSubrange(0, nodes.size(), taken.data());
  for (int index : order)
    nodes.AddAllocated(taken[static_cast<size_t>(index)]);
  return {};
}

} // namespace ortc::frontend
