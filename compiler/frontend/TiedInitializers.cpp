// One parameter of several initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TiedInitializers.h"

#include "compiler/frontend/CopiedInitializers.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "support/Lists.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ortc::frontend {

static Status untie(proto::GraphProto &graph, const std::string &name) {
  std::vector<std::pair<proto::NodeProto *, int>> readers;
  for (auto &node : *graph.mutable_node())
    for (int i = 0; i < node.input_size(); ++i)
      if (node.input(i) == name)
        readers.push_back({&node, i});
  const proto::TensorProto *source = nullptr;
  for (const auto &tensor : graph.initializer())
    if (tensor.name() == name)
      source = &tensor;
  if (!source)
    return Status::refusal("--untie " + name + ": the model has no initializer of that name");
  if (readers.size() < 2)
    return Status::refusal(
        "--untie " + name + ": it has " +
        (readers.empty() ? "no reader" : "one reader only, '" + nameOf(*readers[0].first) + "'"));
  NewNames names(graph);
  proto::TensorProto copy = *source;
  for (size_t i = 1; i < readers.size(); ++i) {
    copy.set_name(names.make(nameOf(*readers[i].first) + "." + name));
    readers[i].first->set_input(readers[i].second, copy.name());
    *graph.add_initializer() = copy;
  }
  return {};
}

namespace {

/// Makes initializers views of others: their readers read that one, or what nodes at the front make of it.
/// All at once, since each change of a name is a walk over the graph.
class ViewWriter {
public:
  explicit ViewWriter(proto::GraphProto &graph) : graph(graph), names(graph) {
    for (const auto &tensor : graph.initializer())
      initializers[tensor.name()] = &tensor;
    for (const auto &output : graph.output())
      outputs.insert(output.name());
  }

  /// Null where there is none, or it has become a view.
  const proto::TensorProto *find(const std::string &name) const {
    auto found = initializers.find(name);
    return found == initializers.end() ? nullptr : found->second;
  }
  /// Of two initializers.
  void replace(const std::string &copy, const std::string &original, const TensorView &view);
  /// Carries out what `replace` was called for.
  void finish();

private:
  proto::NodeProto &addNode(const char *type);
  void addReshape(const std::vector<int64_t> &dims);

  proto::GraphProto &graph;
  NewNames names;
  std::map<std::string, const proto::TensorProto *> initializers;
  std::set<std::string> outputs, removed;
  std::map<std::string, std::string> renamed;       ///< to an initializer, which may be renamed itself
  std::vector<std::vector<proto::NodeProto>> views; ///< nodes of each
  std::string copy, value; ///< of the view that is being written: what it is, what it is now
};

} // namespace

static std::vector<int64_t> dimsOf(const proto::TensorProto &tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

/// The next node of the view, which gives a value of its own.
proto::NodeProto &ViewWriter::addNode(const char *type) {
  proto::NodeProto &node = views.back().emplace_back();
  node.set_op_type(type);
  node.set_name(names.make("tie." + copy));
  node.add_input(value);
  value = names.make(node.name() + ".value");
  node.add_output(value);
  return node;
}

void ViewWriter::addReshape(const std::vector<int64_t> &dims) {
  proto::NodeProto &node = addNode("Reshape");
  auto *tensor = graph.add_initializer();
  tensor->set_name(names.make(node.name() + ".shape"));
  tensor->set_data_type(proto::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(dims.size()));
  tensor->set_raw_data(
      std::string(reinterpret_cast<const char *>(dims.data()), dims.size() * sizeof(int64_t)));
  node.add_input(tensor->name());
}

void ViewWriter::replace(const std::string &name, const std::string &original, const TensorView &view) {
  std::vector<int64_t> shape = dimsOf(*initializers.at(original)), to = dimsOf(*initializers.at(name));
  removed.insert(name);
  initializers.erase(name);
  if (!view.isTransposed() && shape == to && !outputs.count(name) && !names.isNameInside(original)) {
    renamed[name] = original;
    return;
  }
  views.emplace_back();
  copy = name;
  value = original;
  if (view.isTransposed()) {
    if (shape != view.shape)
      addReshape(view.shape);
    shape.clear();
    for (int64_t axis : view.permutation)
      shape.push_back(view.shape[static_cast<size_t>(axis)]);
    auto *permutation = addNode("Transpose").add_attribute();
    permutation->set_name("perm");
    permutation->set_type(proto::AttributeProto::INTS);
    for (int64_t axis : view.permutation)
      permutation->add_ints(axis);
  }
  if (shape != to)
    addReshape(to);
  if (views.back().empty())
    addNode("Identity");
  views.back().back().set_output(0, copy);
}

void ViewWriter::finish() {
  auto isRemoved = [&](const auto &each, int) { return removed.count(each.name()) != 0; };
  removeIf(*graph.mutable_initializer(), isRemoved);
  removeIf(*graph.mutable_input(), isRemoved); // opset 7 and 8 list initializers there
  removeIf(*graph.mutable_value_info(), isRemoved);
  auto *nodes = graph.mutable_node();
  int before = nodes->size();
  for (size_t i = views.size(); i-- > 0;)
    for (proto::NodeProto &node : views[i])
      *nodes->Add() = std::move(node);
  std::rotate(nodes->pointer_begin(), nodes->pointer_begin() + before, nodes->pointer_end());
  for (auto &[name, other] : renamed)
    for (auto next = renamed.find(other); next != renamed.end(); next = renamed.find(other))
      other = next->second;
  renameReads(graph, renamed);
}

static Status tie(const Model &model, ViewWriter &writer, const std::string &copy,
                  const std::string &original) {
  const proto::TensorProto *from = writer.find(original), *to = writer.find(copy);
  std::string flag = "--tie " + copy + "=" + original + ": ";
  if (!from || !to)
    return Status::refusal(flag + "the model has no initializer '" + (to ? original : copy) + "'");
  TensorData source, target;
  std::optional<TensorView> view;
  if (copy != original && from->data_type() == to->data_type() && model.tensor(*from, source).isOk() &&
      model.tensor(*to, target).isOk())
    view = findView(source, target);
  if (!view)
    return Status::refusal(flag + "the first is neither equal to the second nor its transpose");
  writer.replace(copy, original, *view);
  return {};
}

static bool isTied(const SharingOptions &options, const std::string &copy) {
  return std::any_of(options.ties.begin(), options.ties.end(),
                     [&](const auto &pair) { return pair.first == copy || pair.second == copy; });
}

static bool isUntied(const SharingOptions &options, const FoundCopy &found) {
  auto isNamed = [&](const std::string &name) {
    return std::find(options.untie.begin(), options.untie.end(), name) != options.untie.end();
  };
  return isNamed(found.copy) || isNamed(found.original);
}

/// "'val_7' (transposed 'val_3')".
static std::string describeCopy(const FoundCopy &found) {
  return "'" + found.copy + "' (" + (found.view.isTransposed() ? "transposed " : "") + "'" + found.original +
         "')";
}

static std::string joinCopies(const std::vector<const FoundCopy *> &copies) {
  std::vector<std::string> list;
  for (const FoundCopy *each : copies)
    list.push_back(describeCopy(*each));
  return joinSome(list, 3);
}

static void reportCopies(const FoundCopies &copies, const SharingOptions &options, SharingReport &report) {
  std::vector<const FoundCopy *> tied, perhaps;
  for (const FoundCopy &found : copies.same) {
    if (isTied(options, found.copy) || isUntied(options, found))
      continue;
    if (found.isFolded && !isGeneratedName(found.original))
      report.notes.push_back("'" + found.copy + "', which the exporter folded from '" + found.original +
                             "', is tied to it again");
    else
      tied.push_back(&found);
  }
  for (const FoundCopy &found : copies.perhaps)
    if (!isTied(options, found.copy) && !isUntied(options, found))
      perhaps.push_back(&found);
  if (!tied.empty())
    report.notes.push_back(std::to_string(tied.size()) +
                           (tied.size() == 1 ? " initializer with a name" : " initializers with names") +
                           " that the exporter made up " +
                           (tied.size() == 1 ? "equals another one and is" : "equal others and are") +
                           " one parameter with it: " + joinCopies(tied) + "; --untie " + tied[0]->copy +
                           " trains it apart");
  if (!perhaps.empty())
    report.warnings.push_back("equal, perhaps by chance, and trained apart: " + joinCopies(perhaps) +
                              "; if the model has one parameter there: --tie " + perhaps[0]->copy + "=" +
                              perhaps[0]->original);
}

Status tieAndUntie(std::shared_ptr<const Model> &model, const SharingOptions &options,
                   SharingReport &report) {
  InitializerGraph graph(*model);
  FoundCopies copies = findCopies(graph);
  reportCopies(copies, options, report);
  if (copies.same.empty() && options.untie.empty() && options.ties.empty())
    return {};
  Status outcome;
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        ViewWriter writer(*proto.mutable_graph());
        std::set<std::string> apart; // what --untie has kept from being tied
        for (const FoundCopy &found : copies.same)
          if (isUntied(options, found))
            apart.insert({found.copy, found.original});
          else if (!isTied(options, found.copy))
            writer.replace(found.copy, found.original, found.view);
        // After the copies: an original of some may be tied itself.
        for (const auto &[copy, original] : options.ties)
          if (outcome.isOk())
            outcome = tie(*model, writer, copy, original);
        writer.finish();
        for (const std::string &name : options.untie)
          if (outcome.isOk() && !(apart.count(name) && graph.readers.at(name).size() < 2))
            outcome = untie(*proto.mutable_graph(), name);
      },
      edited));
  ORTC_TRY(outcome);
  model = std::move(edited);
  return {};
}

} // namespace ortc::frontend
