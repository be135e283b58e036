// Marks of gradients that PyTorch's exporter leaves in its notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TracedMarks.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "support/Lists.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

namespace ortc::frontend {

constexpr char kDetachTarget[] = "torch.ops.aten.detach.default",
               kEmbeddingTarget[] = "torch.ops.aten.embedding.default";

/// Whether the program made up the name for a result of that operation: "detach", "detach_3".
static bool isResultOf(std::string_view name, std::string_view operation) {
  if (name.substr(0, operation.size()) != operation)
    return false;
  name.remove_prefix(operation.size());
  return name.empty() ||
         (name.size() > 1 && name[0] == '_' &&
          std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return isdigit(c); }));
}

/// The padding row, which is the third argument; none where it is left out or negative.
static std::optional<int64_t> findPaddingRow(const TracedOperation &operation) {
  constexpr std::string_view kKey = "padding_idx: ";
  std::string_view number;
  if (size_t key = operation.text.find(kKey); key != std::string::npos)
    number = std::string_view(operation.text).substr(key + kKey.size());
  else if (operation.positional.size() > 2)
    number = operation.positional[2];
  int64_t row = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), row);
  return error == std::errc() && row >= 0 ? std::optional(row) : std::nullopt;
}

namespace {

class TraceReader {
public:
  TraceReader(const Model &model, GradientMarks &marks, std::vector<std::string> &constants,
              MarkReport &report)
      : g(model), marks(marks), constants(constants), report(report), operations(findOperations(g.graph)),
        signature(findSignature(g.graph)) {}

  void run();

private:
  void findValues();
  void readNodes(const proto::GraphProto &graph);
  void readNode(const proto::NodeProto &node);
  void readRemoved(const std::vector<int> &nodes);
  void readOutputs();
  void readFolded();
  void say();
  /// Values that the nodes of an operation read of others: inputs of nodes, in their order.
  std::vector<Reader> findReads(const std::vector<int> &nodes) const;
  const std::string &nameOf(const Reader &read) const { return g.graph.node(read.node).input(read.input); }
  /// Whether `name` is `value`, or was folded from it.
  bool isOf(const std::string &name, const std::string &value) const {
    auto origin = origins.find(name);
    return name == value || (origin != origins.end() && origin->second.foldedFrom.count(value));
  }
  bool isRemovedDetach(const std::string &name) const {
    return isResultOf(name, "detach") && !values.count(name);
  }

  InitializerGraph g;
  GradientMarks &marks;
  std::vector<std::string> &constants;
  MarkReport &report;
  std::vector<TracedOperation> operations;
  TracedSignature signature;
  std::map<std::string, std::vector<int>> nodesOf; ///< an operation, by its text
  std::map<std::string, std::string> values;       ///< of the program that the file has: their names there
  std::map<std::string, InitializerOrigin> origins;
  std::vector<std::string> detached, lookups, unclear, merged;
};

} // namespace

void TraceReader::findValues() {
  origins = findOrigins(g.graph);
  for (const auto &[argument, name] : signature.parameters)
    values[argument] = name;
  std::vector<std::string> inputs;
  for (const auto &input : g.graph.input())
    if (!g.find(input.name()))
      inputs.push_back(input.name());
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    values[signature.inputs[i]] = inputs.size() == signature.inputs.size() ? inputs[i] : "";
  for (int n = 0; n < g.graph.node_size(); ++n) {
    const TracedOperation &operation = operations[static_cast<size_t>(n)];
    if (operation.text.empty())
      continue;
    nodesOf[operation.text].push_back(n);
    if (!operation.result.empty() && g.graph.node(n).output_size() != 0)
      values[operation.result] = g.graph.node(n).output(0); // of its last node
  }
  for (const auto &[name, origin] : origins)
    if (!origin.foldedFrom.empty())
      values.insert({name, name});
}

void TraceReader::readNode(const proto::NodeProto &node) {
  TracedOperation operation = findOperation(node);
  if (node.output_size() == 0)
    return;
  if (operation.target == kDetachTarget && node.input_size() == 1) {
    marks.detachedInputs.insert({node.output(0), 0});
    detached.push_back(operation.result);
  } else if (operation.target == kEmbeddingTarget && g.isNode(node, "Gather") &&
             intOf(node, "axis", 0) == 0) {
    std::optional<int64_t> row = findPaddingRow(operation);
    if (row && marks.padding.insert({node.output(0), *row}).second)
      lookups.push_back("'" + node.output(0) + "' (row " + std::to_string(*row) + ")");
  }
}

void TraceReader::readNodes(const proto::GraphProto &graph) {
  for (const auto &node : graph.node())
    readNode(node);
  visitBodies(graph, [&](const proto::GraphProto &body) { readNodes(body); });
}

std::vector<Reader> TraceReader::findReads(const std::vector<int> &nodes) const {
  std::set<std::string> own;
  for (int n : nodes)
    own.insert(g.graph.node(n).output().begin(), g.graph.node(n).output().end());
  std::vector<Reader> reads;
  for (int n : nodes)
    for (int i = 0; i < g.graph.node(n).input_size(); ++i) {
      const std::string &name = g.graph.node(n).input(i);
      auto origin = origins.find(name);
      // Numbers of the operation itself are initializers, too.
      bool isNumber = g.find(name) && (origin == origins.end() ||
                                       (origin->second.origin == Origin::constant && !values.count(name)));
      if (!name.empty() && !own.count(name) && !isNumber)
        reads.push_back({n, i});
    }
  return reads;
}

/// Reads of an operation's arguments where the file has no node for these.
void TraceReader::readRemoved(const std::vector<int> &nodes) {
  const TracedOperation &operation = operations[static_cast<size_t>(nodes.front())];
  const std::vector<std::string> &arguments = operation.arguments;
  auto isLost = [&](const std::string &name) { return values.count(name) == 0; };
  if (std::none_of(arguments.begin(), arguments.end(), isLost))
    return;
  std::vector<Reader> reads = findReads(nodes);
  bool isInOrder = reads.size() == arguments.size();
  std::vector<std::string> known;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto found = values.find(arguments[i]);
    if (found == values.end())
      continue;
    known.push_back(found->second);
    isInOrder = isInOrder && (found->second.empty() || isOf(nameOf(reads[i]), found->second));
  }
  std::set<std::string> lost(arguments.begin(), arguments.end()), others;
  for (const std::string &argument : arguments)
    if (!isLost(argument))
      lost.erase(argument);
  for (const Reader &read : reads)
    if (std::none_of(known.begin(), known.end(),
                     [&](const std::string &value) { return isOf(nameOf(read), value); }))
      others.insert(nameOf(read));
  bool isOnly = lost.size() == 1 && others.size() == 1; // what no other argument is
  for (const std::string &name : lost) {
    if (isResultOf(name, "embedding")) { // equal lookups are one node, whatever their padding rows
      for (const Reader &read : reads)
        if (marks.padding.count(nameOf(read)))
          merged.push_back(name);
      continue;
    }
    if (!isResultOf(name, "detach"))
      continue;
    size_t before = marks.detachedInputs.size();
    for (size_t i = 0; i < reads.size(); ++i)
      if (isInOrder ? arguments[i] == name : isOnly && others.count(nameOf(reads[i])))
        marks.detachedInputs.insert({g.graph.node(reads[i].node).output(0), reads[i].input});
    (marks.detachedInputs.size() > before ? detached : unclear).push_back(name);
  }
}

/// Outputs that are detached, whose nodes have their names.
void TraceReader::readOutputs() {
  if (signature.outputs.size() != static_cast<size_t>(g.graph.output_size()))
    return;
  for (int i = 0; i < g.graph.output_size(); ++i)
    if (const std::string &name = signature.outputs[static_cast<size_t>(i)]; isRemovedDetach(name)) {
      marks.detachedOutputs.insert(g.graph.output(i).name());
      detached.push_back(name);
    }
}

/// Copies of detached parameters that were folded.
void TraceReader::readFolded() {
  for (const auto &[name, origin] : origins)
    if (!origin.foldedFrom.empty() && isResultOf(name, "detach")) {
      constants.push_back(name);
      detached.push_back(name);
    }
}

void TraceReader::say() {
  auto clean = [](std::vector<std::string> &names) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  };
  for (auto *names : {&detached, &lookups, &unclear, &merged})
    clean(*names);
  if (!detached.empty())
    report.notes.push_back("the exporter's notes on nodes tell of " + std::to_string(detached.size()) +
                           (detached.size() == 1 ? " detached value" : " detached values") +
                           ", which no gradient goes back through: " + quoteSome(detached, 3));
  report.detached.insert(report.detached.end(), detached.begin(), detached.end());
  if (!lookups.empty())
    report.notes.push_back("the exporter's notes on nodes tell of " + std::to_string(lookups.size()) +
                           (lookups.size() == 1 ? " lookup with a padding row, which it does not train: "
                                                : " lookups with a padding row, which they do not train: ") +
                           joinSome(lookups, 3));
  if (!unclear.empty())
    report.warnings.push_back(
        "the exporter has removed " + std::to_string(unclear.size()) +
        (unclear.size() == 1 ? " detach()" : " calls of detach()") +
        " where nothing tells of what: " + quoteSome(unclear, 3) +
        "; gradients go through there. Export with optimize=False, or name the values in ortc.detached");
  if (!merged.empty())
    report.warnings.push_back(
        "the exporter has merged lookups, and nothing tells which padding rows they had: " +
        quoteSome(merged, 3) + "; export with optimize=False");
}

void TraceReader::run() {
  if (std::all_of(operations.begin(), operations.end(), [](const auto &each) { return each.text.empty(); }))
    return;
  findValues();
  readNodes(g.graph);
  for (const auto &[text, nodes] : nodesOf)
    readRemoved(nodes);
  readOutputs();
  readFolded();
  say();
}

void readTracedMarks(const Model &model, GradientMarks &marks, std::vector<std::string> &constants,
                     MarkReport &report) {
  TraceReader(model, marks, constants, report).run();
}

} // namespace ortc::frontend
