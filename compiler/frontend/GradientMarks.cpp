// Where a file says that gradients go otherwise than its operators say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/GradientMarks.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/NodeOrder.h"
#include "compiler/frontend/OwnOperators.h"
#include "compiler/options/CompileOptions.h"
#include "support/Lists.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace ortc::frontend {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// The values of a model by name: those of the graph, and those of branches, loop bodies and functions besides.
class Values {
public:
  explicit Values(const proto::ModelProto &model) {
    for (const auto &tensor : model.graph().initializer())
      initializers.insert(tensor.name());
    for (const auto &tensor : model.graph().sparse_initializer())
      initializers.insert(tensor.values().name());
    add(model.graph());
    for (const auto &function : model.functions()) {
      functions.insert(function.input().begin(), function.input().end());
      for (const auto &node : function.node())
        add(node, /*isInFunction=*/true);
    }
  }

  bool isInitializer(const std::string &name) const { return initializers.count(name) != 0; }
  bool has(const std::string &name) const { return graph.count(name) || functions.count(name); }
  /// Whether it is of the main graph, or inside of it.
  bool isInGraph(const std::string &name) const { return graph.count(name) != 0; }
  /// The nodes that give a value of that name; null stands for inputs and initializers.
  const std::vector<const proto::NodeProto *> &producersOf(const std::string &name) const {
    static const std::vector<const proto::NodeProto *> kNone;
    auto found = producers.find(name);
    return found == producers.end() ? kNone : found->second;
  }
  std::vector<std::string> list() const { return {graph.begin(), graph.end()}; }

private:
  void add(const proto::NodeProto &node, bool isInFunction) {
    for (const std::string &output : node.output()) {
      (isInFunction ? functions : graph).insert(output);
      producers[output].push_back(&node);
    }
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g())
        add(attribute.g());
      for (const auto &body : attribute.graphs())
        add(body);
    }
  }
  void add(const proto::GraphProto &body) {
    for (const auto &input : body.input())
      graph.insert(input.name());
    for (const auto &tensor : body.initializer())
      graph.insert(tensor.name());
    for (const auto &node : body.node())
      add(node, /*isInFunction=*/false);
  }

  std::set<std::string> initializers, graph, functions;
  std::map<std::string, std::vector<const proto::NodeProto *>> producers;
};

/// Reads the entries of the metadata.
class ListReader {
public:
  ListReader(const Model &model, MarkReport &report)
      : model(model.getProto()), values(this->model), report(report) {}

  Status run(GradientMarks &marks, std::vector<std::string> &constants);

private:
  using Take = std::function<Status(const std::string &line, const std::string &where)>;
  Status readLines(const char *key, const Take &take);
  Status split(const std::string &line, const std::string &where, const char *form, std::string &left,
               std::string &right) const;
  void warnOfUnknown(const char *key, const std::set<std::string> &unknown);
  Status readDetached(GradientMarks &marks, std::vector<std::string> &constants);
  Status readPadding(GradientMarks &marks);
  Status readStraightThrough(GradientMarks &marks);

  const proto::ModelProto &model;
  Values values;
  MarkReport &report;
};

} // namespace

/// "ortc.detached of the model".
static std::string textOf(const char *key) { return std::string(key) + " of the model"; }

Status ListReader::readLines(const char *key, const Take &take) {
  const std::string *text = nullptr;
  for (const auto &entry : model.metadata_props())
    if (entry.key() == key)
      text = &entry.value();
  if (text)
    for (const std::string &line : splitNames(*text))
      ORTC_TRY(take(line, textOf(key) + " has the line '" + line + "'"));
  return Status();
}

Status ListReader::split(const std::string &line, const std::string &where, const char *form,
                         std::string &left, std::string &right) const {
  size_t equals = line.find('=');
  if (equals == line.npos || equals == 0 || equals + 1 == line.size() ||
      line.find('=', equals + 1) != line.npos)
    return Status::refusal(where + ", which is not " + form);
  left = line.substr(0, equals);
  right = line.substr(equals + 1);
  return Status();
}

void ListReader::warnOfUnknown(const char *key, const std::set<std::string> &unknown) {
  if (unknown.empty())
    return;
  std::vector<std::string> names(unknown.begin(), unknown.end());
  report.warnings.push_back(textOf(key) + " has " + std::to_string(names.size()) +
                            (names.size() == 1 ? " name that is no value: " : " names that are no values: ") +
                            quoteSome(names, 4) + "; closest: " + listClosest(names.front(), values.list()));
}

Status ListReader::readDetached(GradientMarks &marks, std::vector<std::string> &constants) {
  std::set<std::string> unknown;
  std::vector<std::string> named;
  ORTC_TRY(readLines(kDetachedKey, [&](const std::string &line, const std::string &) {
    if (values.isInitializer(line))
      constants.push_back(line);
    else if (values.has(line))
      marks.detached.insert(line);
    else
      unknown.insert(line);
    if (!unknown.count(line))
      named.push_back(line);
    return Status();
  }));
  warnOfUnknown(kDetachedKey, unknown);
  if (!named.empty())
    report.notes.push_back(textOf(kDetachedKey) + " names " + std::to_string(named.size()) +
                           (named.size() == 1 ? " value" : " values") +
                           " that no gradient goes back through: " + quoteSome(named, 3));
  report.detached = std::move(named);
  return Status();
}

Status ListReader::readPadding(GradientMarks &marks) {
  std::set<std::string> unknown;
  std::vector<std::string> named;
  ORTC_TRY(readLines(kPaddingKey, [&](const std::string &line, const std::string &where) {
    constexpr char kForm[] = "VALUE=ROW, ROW a whole number; negative ones count from the end";
    std::string value, text;
    int64_t row = 0;
    ORTC_TRY(split(line, where, kForm, value, text));
    if (!parseInteger(text, row))
      return Status::refusal(where + ", which is not " + kForm);
    if (!values.has(value)) {
      unknown.insert(value);
      return Status();
    }
    const auto &producers = values.producersOf(value);
    if (producers.empty())
      return Status::refusal(where + ", but no node gives '" + value +
                             "'; padding rows are of what a Gather gives");
    for (const proto::NodeProto *node : producers)
      if (node->op_type() != "Gather" || !canonicalDomain(node->domain()).empty() ||
          intOf(*node, "axis", 0) != 0)
        return Status::refusal(where + ", but " + describe(*node) + " gives '" + value +
                               "'; padding rows are of what a Gather along the first axis gives");
    auto [known, isNew] = marks.padding.insert({value, row});
    if (!isNew && known->second != row)
      return Status::refusal(where + ", and another with the row " + std::to_string(known->second));
    if (isNew)
      named.push_back("'" + value + "' (row " + std::to_string(row) + ")");
    return Status();
  }));
  warnOfUnknown(kPaddingKey, unknown);
  if (!named.empty())
    report.notes.push_back(textOf(kPaddingKey) + " names " + std::to_string(named.size()) +
                           (named.size() == 1 ? " lookup with a padding row, which it does not train: "
                                              : " lookups with a padding row, which they do not train: ") +
                           joinSome(named, 3));
  return Status();
}

Status ListReader::readStraightThrough(GradientMarks &marks) {
  std::set<std::string> unknown;
  std::vector<std::string> named;
  ORTC_TRY(readLines(kStraightThroughKey, [&](const std::string &line, const std::string &where) {
    std::string output, input;
    ORTC_TRY(split(line, where, "OUTPUT=INPUT, two values of one shape and type", output, input));
    if (output == input)
      return Status::refusal(where + ", whose gradient goes to it anyway");
    for (const std::string &name : {output, input})
      if (!values.has(name) && !values.isInitializer(name))
        unknown.insert(name);
    if (unknown.count(output) || unknown.count(input))
      return Status();
    auto [known, isNew] = marks.straightThrough.insert({output, input});
    if (!isNew && known->second != input)
      return Status::refusal(where + ", and another with the input '" + known->second + "'");
    if (isNew)
      named.push_back("'" + output + "' (to '" + input + "')");
    return Status();
  }));
  warnOfUnknown(kStraightThroughKey, unknown);
  if (!named.empty())
    report.notes.push_back(textOf(kStraightThroughKey) + " names " + std::to_string(named.size()) +
                           (named.size() == 1 ? " value whose gradient goes to another as it is: "
                                              : " values whose gradients go to others as they are: ") +
                           joinSome(named, 3));
  return Status();
}

Status ListReader::run(GradientMarks &marks, std::vector<std::string> &constants) {
  ORTC_TRY(readDetached(marks, constants));
  ORTC_TRY(readPadding(marks));
  return readStraightThrough(marks);
}

Status readGradientMarks(const Model &model, GradientMarks &marks, std::vector<std::string> &constants,
                         MarkReport &report) {
  return ListReader(model, report).run(marks, constants);
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

namespace {

/// Puts nodes of this compiler's own operators behind marked values.
class MarkWriter {
public:
  MarkWriter(proto::ModelProto &model, const GradientMarks &marks)
      : model(model), marks(marks), names(model.graph()) {}

  Status run();

private:
  /// The additions to the graph that is edited.
  struct Edits {
    std::map<int, std::vector<proto::NodeProto>> nodes; ///< by the node that they stand in front of
    std::map<std::string, std::string> renames;         ///< of reads
    std::map<std::string, int> types;                   ///< places in its value_info
  };
  Status editGraph(proto::GraphProto &graph);
  Status editFunction(proto::FunctionProto &function);
  Status editNode(proto::GraphProto &graph, Edits &edits, int n);
  Status editSources(proto::GraphProto &graph, Edits &edits);
  /// Nodes that make `to` of `from`, for the marks of `value`.
  Status addChain(proto::GraphProto &graph, Edits &edits, int before, const std::string &value,
                  const std::string &from, const std::string &to);
  std::string copyName(proto::GraphProto &graph, Edits &edits, const std::string &value, const char *ending);
  void addNode(Edits &edits, int before, const char *type, const std::vector<std::string> &inputs,
               const std::string &output);
  bool isMarked(const std::string &value) const {
    return !elsewhere.count(value) && (marks.detached.count(value) || marks.straightThrough.count(value));
  }

  proto::ModelProto &model;
  const GradientMarks &marks;
  NewNames names;
  std::vector<std::set<std::string>> scopes; ///< of the graph that is edited, and of those around it
  std::set<std::string> elsewhere;           ///< names that are meant in another graph
};

} // namespace

void MarkWriter::addNode(Edits &edits, int before, const char *type, const std::vector<std::string> &inputs,
                         const std::string &output) {
  proto::NodeProto &node = edits.nodes[before].emplace_back();
  node.set_domain(kOwnDomain);
  node.set_op_type(type);
  node.set_name(names.make(output + "." + type));
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
}

/// A name for another value of the type that the file states for `value`.
std::string MarkWriter::copyName(proto::GraphProto &graph, Edits &edits, const std::string &value,
                                 const char *ending) {
  std::string name = names.make(value + ending);
  if (auto found = edits.types.find(value); found != edits.types.end()) {
    proto::ValueInfoProto copy = graph.value_info(found->second);
    copy.set_name(name);
    *graph.add_value_info() = std::move(copy);
  }
  return name;
}

Status MarkWriter::addChain(proto::GraphProto &graph, Edits &edits, int before, const std::string &value,
                            const std::string &from, const std::string &to) {
  auto straight = marks.straightThrough.find(value);
  bool isDetached = marks.detached.count(value) != 0;
  std::string last = from;
  if (straight != marks.straightThrough.end()) {
    const std::string &input = straight->second;
    if (std::none_of(scopes.begin(), scopes.end(),
                     [&](const auto &scope) { return scope.count(input) != 0; }))
      return Status::refusal(std::string(kStraightThroughKey) + " of the model has the line '" + value + "=" +
                             input + "', but '" + input +
                             "' is inside of a branch, loop body or function, where '" + value + "' is not");
    std::string next = isDetached ? copyName(graph, edits, value, ".chosen") : to;
    addNode(edits, before, kStraightThrough, {last, input}, next);
    last = next;
  }
  if (isDetached)
    addNode(edits, before, kDetach, {last}, to);
  return Status();
}

/// Reads, and results, of one node.
Status MarkWriter::editNode(proto::GraphProto &graph, Edits &edits, int n) {
  proto::NodeProto &node = *graph.mutable_node(n);
  if (node.output_size() == 0)
    return Status();
  const std::string first = node.output(0);
  for (auto at = marks.detachedInputs.lower_bound({first, 0});
       at != marks.detachedInputs.end() && at->first == first; ++at) {
    if (elsewhere.count(first) || at->second >= node.input_size())
      continue;
    std::string &input = *node.mutable_input(at->second);
    std::string detached = copyName(graph, edits, input, ".detached");
    addNode(edits, n, kDetach, {input}, detached);
    input = detached;
  }
  if (auto padding = marks.padding.find(first); padding != marks.padding.end() && !elsewhere.count(first)) {
    node.set_domain(kOwnDomain);
    node.set_op_type(kEmbedding);
    node.clear_attribute();
    auto *row = node.add_attribute();
    row->set_name(kPaddingRow);
    row->set_type(proto::AttributeProto::INT);
    row->set_i(padding->second);
  }
  for (std::string &output : *node.mutable_output()) {
    const std::string value = output;
    bool isOnlyOutput = scopes.size() == 1 && !elsewhere.count(value) && marks.detachedOutputs.count(value) &&
                        !marks.detached.count(value);
    if (value.empty() || !(isMarked(value) || isOnlyOutput))
      continue;
    output = copyName(graph, edits, value, ".attached");
    std::string read = value;
    if (isOnlyOutput) {
      read = isMarked(value) ? copyName(graph, edits, value, ".read") : output;
      edits.renames[value] = read;
      addNode(edits, n + 1, kDetach, {read}, value);
    }
    if (isMarked(value))
      ORTC_TRY(addChain(graph, edits, n + 1, value, output, read));
  }
  return Status();
}

/// Marked values that no node gives: inputs, and initializers.
Status MarkWriter::editSources(proto::GraphProto &graph, Edits &edits) {
  std::set<std::string> sources;
  for (const auto &input : graph.input())
    sources.insert(input.name());
  for (const auto &tensor : graph.initializer())
    sources.insert(tensor.name());
  for (const std::string &value : sources) {
    if (!isMarked(value))
      continue;
    edits.renames[value] = copyName(graph, edits, value, ".marked");
    ORTC_TRY(addChain(graph, edits, 0, value, value, edits.renames[value]));
  }
  return Status();
}

Status MarkWriter::editGraph(proto::GraphProto &graph) {
  scopes.push_back(listNames(graph));
  for (auto &node : *graph.mutable_node())
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        ORTC_TRY(editGraph(*attribute.mutable_g()));
      for (auto &body : *attribute.mutable_graphs())
        ORTC_TRY(editGraph(body));
    }
  Edits edits;
  for (int i = 0; i < graph.value_info_size(); ++i)
    edits.types[graph.value_info(i).name()] = i;
  for (int n = 0; n < graph.node_size(); ++n)
    ORTC_TRY(editNode(graph, edits, n));
  ORTC_TRY(editSources(graph, edits));
  if (!edits.renames.empty())
    renameReads(graph, edits.renames, /*isInside=*/scopes.size() > 1);
  for (auto &[before, nodes] : edits.nodes)
    for (proto::NodeProto &node : nodes) // a straight-through gradient may go to a renamed input
      if (auto found = edits.renames.find(node.op_type() == kStraightThrough ? node.input(1) : "");
          found != edits.renames.end())
        node.set_input(1, found->second);
  insertNodes(graph, edits.nodes);
  scopes.pop_back();
  return Status();
}

/// As a graph.
Status MarkWriter::editFunction(proto::FunctionProto &function) {
  proto::GraphProto graph;
  for (const std::string &input : function.input())
    graph.add_input()->set_name(input);
  for (const std::string &output : function.output())
    graph.add_output()->set_name(output);
  graph.mutable_node()->Swap(function.mutable_node());
  graph.mutable_value_info()->Swap(function.mutable_value_info());
  names = NewNames(graph);
  ORTC_TRY(editGraph(graph));
  graph.mutable_node()->Swap(function.mutable_node());
  graph.mutable_value_info()->Swap(function.mutable_value_info());
  importOwnDomain(function);
  return Status();
}

/// The names of a graph, and of all inside of it.
static void addNames(const proto::GraphProto &graph, std::set<std::string> &names) {
  names.merge(listNames(graph));
  visitBodies(graph, [&](const proto::GraphProto &body) { addNames(body, names); });
}

Status MarkWriter::run() {
  importOwnDomain(model);
  std::set<std::string> inGraph;
  addNames(model.graph(), inGraph);
  ORTC_TRY(editGraph(*model.mutable_graph()));
  elsewhere = std::move(inGraph);
  for (auto &function : *model.mutable_functions())
    ORTC_TRY(editFunction(function));
  return Status();
}

Status applyGradientMarks(std::shared_ptr<const Model> &model, const GradientMarks &marks) {
  if (marks.isEmpty())
    return Status();
  Status outcome;
  std::shared_ptr<const Model> edited;
  Status checked =
      model->edit([&](proto::ModelProto &proto) { outcome = MarkWriter(proto, marks).run(); }, edited);
  ORTC_TRY(outcome);
  if (!checked.isOk()) // all else was right before
    return Status::refusal("the gradient of a value would go to what is computed of it, by " +
                           std::string(kStraightThroughKey) + " of the model: " + checked.getMessage());
  model = std::move(edited);
  return Status();
}

} // namespace ortc::frontend
