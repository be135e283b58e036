// The inference form of a graph that was exported for training.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/InferenceForm.h"

#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/OwnOperators.h"
#include "compiler/frontend/RandomMasks.h"
#include "support/Elements.h"

#include <algorithm>
#include <map>
#include <type_traits>

namespace ortc::frontend {

namespace {

/// Nodes in the place of others, for all lists of a graph at once.
class Replacements {
public:
  std::vector<proto::NodeProto> &at(const ValueGraph::Node &node) { return lists[node.home][node.place]; }
  void apply();

private:
  std::map<NodeList *, std::map<int, std::vector<proto::NodeProto>>> lists;
};

/// One graph, or function, whose masks are rewritten.
class MaskWriter {
public:
  enum class Form { byMode, inference };
  MaskWriter(const ValueGraph &graph, Form form, const std::set<std::string> &wide, InferenceReport &report)
      : g(graph), form(form), wide(wide), report(report) {
    for (int i = 0; i < g.countValues(); ++i)
      taken.insert(std::string(g.getValue(i).name));
  }

  /// Whether there was anything to write.
  bool write(const RandomMasks &found);

private:
  std::string makeName(const std::string &name);
  void writeMask(const RandomMask &mask);
  bool writeSlope(const RandomSlope &slope);
  /// Lets the value that `node` gives be `value` in inference.
  void choose(const ValueGraph::Node &node, const std::string &value, bool isWide,
              std::vector<proto::NodeProto> &nodes);

  const ValueGraph &g;
  Form form;
  const std::set<std::string> &wide;
  InferenceReport &report;
  std::set<std::string> taken;
  Replacements replacements;
};

} // namespace

void Replacements::apply() {
  for (auto &[list, places] : lists) {
    int count = list->size();
    std::vector<proto::NodeProto *> old(static_cast<size_t>(count));
    list->ExtractSubrange(0, count, old.data());
    for (int place = 0; place < count; ++place) {
      auto found = places.find(place);
      if (found == places.end()) {
        list->AddAllocated(old[static_cast<size_t>(place)]);
        continue;
      }
      for (proto::NodeProto &node : found->second)
        *list->Add() = std::move(node);
      delete old[static_cast<size_t>(place)];
    }
  }
}

static proto::NodeProto makeNode(const char *type, const std::vector<std::string> &inputs,
                                 const std::string &output) {
  proto::NodeProto node;
  node.set_op_type(type);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  return node;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

std::string MaskWriter::makeName(const std::string &name) {
  std::string made = name;
  for (int n = 1; !taken.insert(made).second; ++n)
    made = name + "_" + std::to_string(n);
  return made;
}

void MaskWriter::choose(const ValueGraph::Node &node, const std::string &value, bool isWide,
                        std::vector<proto::NodeProto> &nodes) {
  const std::string &output = node.proto->output(0);
  if (form == Form::inference && !isWide) {
    nodes.push_back(makeNode("Identity", {value}, output));
    nodes.back().set_name(node.proto->name());
    return;
  }
  proto::NodeProto drawn = *node.proto;
  std::string training = makeName(output + "/training");
  drawn.set_output(0, training);
  nodes.insert(nodes.begin(), std::move(drawn));
  if (form == Form::inference) {
    std::string shape = makeName(output + "/shape");
    nodes.push_back(makeNode("Shape", {training}, shape));
    nodes.push_back(makeNode("Expand", {value, shape}, output));
    return;
  }
  nodes.push_back(makeNode(kByMode, {training, value}, output));
  nodes.back().set_domain(kOwnDomain);
}

void MaskWriter::writeMask(const RandomMask &mask) {
  const ValueGraph::Node &node = g.getNode(mask.node);
  std::vector<proto::NodeProto> &nodes = replacements.at(node);
  std::string value(g.getValue(mask.signal).name);
  if (mask.cast) {
    nodes.push_back(*mask.cast);
    nodes.back().set_input(0, value);
    value = makeName(node.proto->output(0) + "/kept");
    nodes.back().set_output(0, value);
    nodes.back().clear_name();
  }
  choose(node, value, wide.count(node.proto->output(0)) != 0, nodes);
  report.masks.push_back(node.proto->output(0));
  if (!mask.isScaled)
    report.unscaled.push_back(node.proto->output(0));
}

/// False where nothing tells the type of what is drawn.
bool MaskWriter::writeSlope(const RandomSlope &slope) {
  const ValueGraph::Node &node = g.getNode(slope.node);
  const proto::NodeProto &draw = *node.proto;
  const proto::AttributeProto *type = findAttribute(draw, "dtype");
  constexpr int64_t kFirstCastLike = 15;
  bool isLike = draw.input_size() > 0 && !type;
  if ((isLike && g.getOpset() < kFirstCastLike) || (type && !type->ref_attr_name().empty()))
    return false;
  std::vector<proto::NodeProto> &nodes = replacements.at(node);
  std::string number = makeName(draw.output(0) + "/number"), mean = makeName(draw.output(0) + "/mean");
  proto::NodeProto constant = makeNode("Constant", {}, number);
  auto *attribute = constant.add_attribute();
  attribute->set_name("value");
  attribute->set_type(proto::AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(proto::TensorProto::FLOAT);
  attribute->mutable_t()->add_dims(1);
  attribute->mutable_t()->add_float_data(static_cast<float>(slope.mean));
  proto::NodeProto cast =
      isLike ? makeNode("CastLike", {number, draw.input(0)}, mean) : makeNode("Cast", {number}, mean);
  if (!isLike) {
    auto *to = cast.add_attribute();
    to->set_name("to");
    to->set_type(proto::AttributeProto::INT);
    to->set_i(type ? type->i() : int64_t(proto::TensorProto::FLOAT));
  }
  nodes = {std::move(constant), std::move(cast)};
  choose(node, mean, /*isWide=*/false, nodes);
  report.masks.push_back(draw.output(0));
  return true;
}

bool MaskWriter::write(const RandomMasks &found) {
  for (const RandomMask &mask : found.masks)
    writeMask(mask);
  std::vector<int> others = found.others;
  for (const RandomSlope &slope : found.slopes)
    if (!writeSlope(slope))
      others.push_back(slope.node);
  for (int node : others)
    report.random.push_back(describe(*g.getNode(node).proto));
  replacements.apply();
  return !found.masks.empty() || found.slopes.size() > others.size() - found.others.size();
}

/// The number that all elements are.
static std::optional<double> readNumber(const ReadTensor &read, const proto::TensorProto &tensor) {
  constexpr size_t kMostBytes = size_t(1) << 28;
  TensorData data;
  if (!read(tensor, data).isOk() || data.bytes.empty() || data.bytes.size() > kMostBytes)
    return std::nullopt;
  auto type = static_cast<DataType>(data.type);
  size_t width = getElementBytes(type);
  if (width == 0 || data.bytes.size() % width != 0)
    return std::nullopt;
  std::string_view first = data.bytes.substr(0, width);
  for (size_t at = width; at < data.bytes.size(); at += width)
    if (data.bytes.substr(at, width) != first)
      return std::nullopt;
  return loadAsDouble(type, reinterpret_cast<const uint8_t *>(first.data()));
}

/// Initializers that training may change, whatever they are at first.
static std::set<const proto::TensorProto *> listTrainable(const proto::GraphProto &graph) {
  std::map<std::string, InitializerOrigin> origins = findOrigins(graph);
  std::set<const proto::TensorProto *> trainable;
  for (const auto &tensor : graph.initializer()) {
    auto found = origins.find(tensor.name());
    Origin origin = found == origins.end() ? Origin::unknown : found->second.origin;
    bool isOne =
        std::all_of(tensor.dims().begin(), tensor.dims().end(), [](int64_t dim) { return dim == 1; });
    if (origin == Origin::parameter ||
        (origin == Origin::unknown && !isOne && !isGeneratedName(tensor.name())))
      trainable.insert(&tensor);
  }
  return trainable;
}

/// Rewrites masks of the graph and of all functions. Gives whether there are any.
static bool writeMasks(proto::ModelProto &model, MaskWriter::Form form, const ReadTensor &read,
                       const std::set<std::string> &wide, InferenceReport &report) {
  std::set<const proto::TensorProto *> trainable = listTrainable(model.graph());
  ReadNumber readFixed = [&](const proto::TensorProto &tensor) {
    return trainable.count(&tensor) ? std::nullopt : readNumber(read, tensor);
  };
  bool isAny = false;
  auto rewrite = [&](auto &graph, auto &importer) {
    ValueGraph values(graph, model);
    if (!MaskWriter(values, form, wide, report).write(findRandomMasks(values, readFixed)))
      return;
    if (form == MaskWriter::Form::byMode)
      importOwnDomain(importer);
    isAny = true;
  };
  for (auto &function : *model.mutable_functions())
    rewrite(function, function);
  rewrite(*model.mutable_graph(), model);
  return isAny;
}

Status separateMasks(std::shared_ptr<const Model> &model, InferenceReport &report) {
  if (!drawsNumbers(model->getProto()))
    return Status();
  bool isAny = false;
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        isAny = writeMasks(
            proto, MaskWriter::Form::byMode,
            [&](const proto::TensorProto &tensor, TensorData &data) { return model->tensor(tensor, data); },
            {}, report);
      },
      edited));
  if (isAny)
    model = std::move(edited);
  return Status();
}

//===----------------------------------------------------------------------===//
// Operators with a mode
//===----------------------------------------------------------------------===//

static void removeAttribute(proto::NodeProto &node, std::string_view name) {
  removeIf(*node.mutable_attribute(), [&](const auto &attribute, int) { return attribute.name() == name; });
}

/// Leaves the first output. Others that are read are what the norm has as its statistics.
static bool stopNorm(proto::NodeProto &norm, int64_t opset, std::vector<proto::NodeProto> &after) {
  if (norm.output_size() == 0)
    return false;
  constexpr int64_t kFirstWithMode = 14;
  const auto *mode = findAttribute(norm, "training_mode");
  bool isTraining = opset >= kFirstWithMode
                        ? mode && (mode->i() != 0 || !mode->ref_attr_name().empty())
                        : std::any_of(norm.output().begin() + 1, norm.output().end(),
                                      [](const std::string &name) { return !name.empty(); });
  if (!isTraining)
    return false;
  removeAttribute(norm, "training_mode");
  for (int i = 1; i < norm.output_size(); ++i) // a mean, a variance, and before opset 14 both again
    if (int input = i % 2 ? 3 : 4; !norm.output(i).empty() && input < norm.input_size())
      after.push_back(makeNode("Identity", {norm.input(input)}, norm.output(i)));
  norm.mutable_output()->DeleteSubrange(1, norm.output_size() - 1);
  return true;
}

/// Without a mode, the ratio stays for who trains the file again.
static bool stopDropout(proto::NodeProto &dropout, int64_t opset) {
  constexpr int64_t kFirstWithMode = 12;
  if (opset < kFirstWithMode || dropout.input_size() < 3 || dropout.input(2).empty())
    return false;
  dropout.mutable_input()->DeleteSubrange(2, dropout.input_size() - 2);
  return true;
}

static void stopTraining(const ValueGraph &graph, InferenceReport &report) {
  Replacements replacements;
  for (const ValueGraph::Node &node : graph.getNodes()) {
    bool isNorm = graph.isNode(node, "BatchNormalization");
    if (!isNorm && !graph.isNode(node, "Dropout"))
      continue;
    std::vector<proto::NodeProto> nodes = {*node.proto}, after;
    bool isChanged =
        isNorm ? stopNorm(nodes[0], graph.getOpset(), after) : stopDropout(nodes[0], graph.getOpset());
    if (!isChanged)
      continue;
    ++(isNorm ? report.norms : report.dropouts);
    nodes.insert(nodes.end(), after.begin(), after.end());
    replacements.at(node) = std::move(nodes);
  }
  replacements.apply();
}

//===----------------------------------------------------------------------===//
// Nodes without a reader
//===----------------------------------------------------------------------===//

/// The needs of outputs of a graph: nodes by their outputs, and the names of the outermost graph that nodes read.
struct Needs {
  std::set<std::string> given, read;
};

static Needs listNeeds(const ValueGraph &graph) {
  Needs needs;
  std::vector<bool> live = graph.findLive();
  for (size_t n = 0; n < live.size(); ++n) {
    if (!live[n])
      continue;
    const ValueGraph::Node &node = graph.getNodes()[n];
    for (const std::string &output : node.proto->output())
      needs.given.insert(output);
    for (int input : node.inputs)
      if (input >= 0 && graph.getValue(input).node < 0)
        needs.read.insert(std::string(graph.getValue(input).name));
  }
  return needs;
}

/// Removes nodes that gave what outputs needed, and do no more.
static void removeNodes(NodeList &list, const Needs &before, const Needs &now, std::set<std::string> &gone) {
  removeIf(list, [&](const proto::NodeProto &node, int) {
    auto isOf = [&](const std::set<std::string> &names) {
      return std::any_of(node.output().begin(), node.output().end(),
                         [&](const std::string &name) { return names.count(name) != 0; });
    };
    if (!isOf(before.given) || isOf(now.given))
      return false;
    gone.insert(node.output().begin(), node.output().end());
    return true;
  });
  for (auto &node : list)
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        removeNodes(*attribute.mutable_g()->mutable_node(), before, now, gone);
      for (auto &body : *attribute.mutable_graphs())
        removeNodes(*body.mutable_node(), before, now, gone);
    }
}

static void removeInputs(proto::GraphProto &graph, const Needs &before, const Needs &now) {
  std::set<std::string> outputs;
  for (const auto &output : graph.output())
    outputs.insert(output.name());
  auto isGone = [&](const auto &each, int) {
    return before.read.count(each.name()) && !now.read.count(each.name()) && !outputs.count(each.name());
  };
  removeIf(*graph.mutable_initializer(), isGone);
  removeIf(*graph.mutable_input(), isGone);
}

void makeInference(proto::ModelProto &model, const ReadTensor &read, const std::set<std::string> &wide,
                   InferenceReport &report) {
  proto::GraphProto &graph = *model.mutable_graph();
  std::vector<Needs> before;
  auto forEach = [&](auto &&visit) {
    visit(graph, ValueGraph(graph, model));
    for (auto &function : *model.mutable_functions())
      visit(function, ValueGraph(function, model));
  };
  forEach([&](auto &, const ValueGraph &values) { before.push_back(listNeeds(values)); });
  forEach([&](auto &, const ValueGraph &values) { stopTraining(values, report); });
  if (read && drawsNumbers(model))
    writeMasks(model, MaskWriter::Form::inference, read, wide, report);
  size_t which = 0;
  forEach([&](auto &each, const ValueGraph &values) {
    std::set<std::string> gone;
    const Needs &then = before[which++], now = listNeeds(values);
    removeNodes(*each.mutable_node(), then, now, gone);
    removeIf(*each.mutable_value_info(),
             [&](const auto &value, int) { return gone.count(value.name()) != 0; });
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, proto::GraphProto>)
      removeInputs(each, then, now);
  });
}

} // namespace ortc::frontend
