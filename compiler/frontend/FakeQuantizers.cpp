// Rounding to integers in front of layers that are trained to be quantised.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/FakeQuantizers.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace ortc::frontend {

namespace {

/// A node that computes with a weight, and which other operand it has.
struct Layer {
  int node, data;
  int64_t axis; ///< of the weight: the output channels
};

/// Finds the layers of weights.
class LayerFinder {
public:
  explicit LayerFinder(const InitializerGraph &g) : g(g), readers(listReaders(g.graph)) {}

  /// Readers of the weight that lead to layers alone, and these layers.
  void find(const proto::TensorProto &weight, std::vector<Reader> &roots, std::vector<Layer> &layers) const;

private:
  /// `axes`: for each axis of what is read there, the one of the weight.
  bool follow(const Reader &reader, const std::vector<int64_t> &axes, std::vector<Layer> &layers) const;
  std::optional<Layer> layerOf(const Reader &reader, const std::vector<int64_t> &axes) const;

  const InitializerGraph &g;
  std::map<std::string, std::vector<Reader>> readers;
};

/// Writes the quantisers.
class QuantizerWriter {
public:
  explicit QuantizerWriter(proto::GraphProto &graph) : graph(graph), names(graph) {}

  /// Lets the readers have a quantised value; `channels` is -1 for one range.
  FakeQuantizer add(const std::string &tensor, const std::vector<Reader> &readers,
                    const QuantizerSettings &settings, bool isWeight, int64_t axis, int64_t channels);
  /// Puts the nodes in; readers are numbered as before until then.
  void finish() { insertNodes(graph, nodes); }

private:
  std::string addVector(const std::string &name, int64_t channels, float value);

  proto::GraphProto &graph;
  NewNames names;
  std::map<int, std::vector<proto::NodeProto>> nodes;
};

/// A weight, and where it is read.
struct Chosen {
  const proto::TensorProto *weight;
  std::vector<Reader> roots;
  std::vector<Layer> layers;
  size_t setting;
};

} // namespace

std::optional<Layer> LayerFinder::layerOf(const Reader &reader, const std::vector<int64_t> &axes) const {
  const proto::NodeProto &node = g.graph.node(reader.node);
  size_t rank = axes.size();
  auto layer = [&](int data, size_t axis) -> std::optional<Layer> {
    if (data >= node.input_size() || node.input(data).empty() || node.input(data) == node.input(reader.input))
      return std::nullopt;
    return Layer{reader.node, data, axes[axis]};
  };
  if (g.isNode(node, "MatMul") && rank >= 2)
    return reader.input == 1 ? layer(0, rank - 1) : layer(1, rank - 2);
  if (g.isNode(node, "Gemm") && rank == 2 && reader.input <= 1)
    return reader.input == 1 ? layer(0, intOf(node, "transB", 0) ? 0 : 1)
                             : layer(1, intOf(node, "transA", 0) ? 1 : 0);
  if (g.isNode(node, "Conv") && rank >= 3 && reader.input == 1)
    return layer(0, 0);
  if (g.isNode(node, "ConvTranspose") && rank >= 3 && reader.input == 1)
    return layer(0, 1);
  return std::nullopt;
}

/// What a Transpose does to `axes`.
static std::vector<int64_t> permute(const proto::NodeProto &transpose, const std::vector<int64_t> &axes) {
  const auto *permutation = findAttribute(transpose, "perm");
  if (!permutation)
    return {axes.rbegin(), axes.rend()};
  std::vector<int64_t> result;
  for (int64_t from : permutation->ints())
    if (from >= 0 && from < int64_t(axes.size()))
      result.push_back(axes[static_cast<size_t>(from)]);
  return result;
}

bool LayerFinder::follow(const Reader &reader, const std::vector<int64_t> &axes,
                         std::vector<Layer> &layers) const {
  const proto::NodeProto &node = g.graph.node(reader.node);
  bool isTranspose = g.isNode(node, "Transpose");
  if (!isTranspose && !g.isIdentity(node)) {
    std::optional<Layer> layer = layerOf(reader, axes);
    if (layer)
      layers.push_back(*layer);
    return layer.has_value();
  }
  const std::string &value = node.output(0);
  auto found = readers.find(value);
  if (g.outputs.count(value) || g.readInside.count(value) || found == readers.end())
    return false;
  std::vector<int64_t> turned = isTranspose ? permute(node, axes) : axes;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](const Reader &next) { return follow(next, turned, layers); });
}

void LayerFinder::find(const proto::TensorProto &weight, std::vector<Reader> &roots,
                       std::vector<Layer> &layers) const {
  auto found = readers.find(weight.name());
  if (found == readers.end())
    return;
  std::vector<int64_t> axes(static_cast<size_t>(weight.dims_size()));
  std::iota(axes.begin(), axes.end(), int64_t(0));
  for (const Reader &reader : found->second) {
    std::vector<Layer> more;
    if (!follow(reader, axes, more))
      continue;
    roots.push_back(reader);
    layers.insert(layers.end(), more.begin(), more.end());
  }
}

std::string QuantizerWriter::addVector(const std::string &name, int64_t channels, float value) {
  auto *tensor = graph.add_initializer();
  tensor->set_name(names.make(name));
  tensor->set_data_type(proto::TensorProto::FLOAT);
  if (channels >= 0)
    tensor->add_dims(channels);
  std::string bytes;
  for (int64_t i = 0; i < std::max(channels, int64_t(1)); ++i)
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  tensor->set_raw_data(std::move(bytes));
  return tensor->name();
}

static void addInt(proto::NodeProto &node, const char *name, int64_t value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(proto::AttributeProto::INT);
  attribute->set_i(value);
}

static void addFloat(proto::NodeProto &node, const char *name, double value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(proto::AttributeProto::FLOAT);
  attribute->set_f(static_cast<float>(value));
}

FakeQuantizer QuantizerWriter::add(const std::string &tensor, const std::vector<Reader> &readers,
                                   const QuantizerSettings &settings, bool isWeight, int64_t axis,
                                   int64_t channels) {
  constexpr float kNothingSeen = std::numeric_limits<float>::infinity();
  FakeQuantizer quantizer;
  quantizer.tensor = tensor;
  quantizer.isWeight = isWeight;
  quantizer.axis = channels < 0 ? -1 : axis;
  quantizer.minimum = addVector(tensor + ".min", channels, kNothingSeen);
  quantizer.maximum = addVector(tensor + ".max", channels, -kNothingSeen);
  proto::NodeProto node;
  node.set_op_type(kFakeQuantize);
  node.set_domain(kOwnDomain);
  node.set_name(names.make(tensor + "." + kFakeQuantize));
  for (const std::string &input : {tensor, quantizer.minimum, quantizer.maximum})
    node.add_input(input);
  if (settings.isLearned)
    node.add_input(quantizer.scaleOffset = addVector(tensor + ".scale_offset", channels, 0));
  node.add_output(names.make(tensor + ".quantized"));
  addInt(node, "bits", settings.bits);
  addInt(node, "symmetric", isWeight);
  if (quantizer.axis >= 0)
    addInt(node, "axis", quantizer.axis);
  if (settings.isAveraged)
    addFloat(node, "averaging", settings.averaging);
  if (settings.observedSteps > 0)
    addInt(node, "steps", settings.observedSteps);
  int first = graph.node_size();
  for (const Reader &reader : readers) {
    graph.mutable_node(reader.node)->set_input(reader.input, node.output(0));
    first = std::min(first, reader.node);
  }
  nodes[first].push_back(std::move(node));
  return quantizer;
}

/// The first node that is about integers that stand for real numbers.
static const proto::NodeProto *findQuantized(const proto::GraphProto &graph) {
  static const std::string_view kTypes[] = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                                            "QLinearConv",    "QLinearMatMul",    "MatMulInteger",
                                            "ConvInteger",    "MatMulNBits",      kFakeQuantize};
  const proto::NodeProto *found = nullptr;
  for (const auto &node : graph.node())
    if (std::find(std::begin(kTypes), std::end(kTypes), node.op_type()) != std::end(kTypes))
      return &node;
  visitBodies(graph, [&](const proto::GraphProto &body) { found = found ? found : findQuantized(body); });
  return found;
}

/// Why a weight cannot be quantised; empty when it can.
static std::string findObstacle(const Chosen &chosen, const QuantizerSettings &settings, int64_t opset,
                                const proto::GraphProto &graph) {
  const proto::TensorProto &weight = *chosen.weight;
  if (weight.data_type() != proto::TensorProto::FLOAT)
    return "it is " + dataTypeName(weight.data_type()) + ", and only weights of FLOAT are quantised";
  int64_t needed = settings.isPerChannel ? 13
                   : settings.bits < 8   ? 11
                                         : 10; // below 8 bits with a Clip by inputs
  if (opset < needed)
    return std::string("what is exported of per=") + (settings.isPerChannel ? "channel" : "tensor") +
           " needs opset " + std::to_string(needed) + ", and the model has opset " + std::to_string(opset);
  const Layer &first = chosen.layers.front();
  for (const Layer &layer : chosen.layers)
    if (settings.isPerChannel && layer.axis != first.axis)
      return describe(graph.node(first.node)) + " has its channels along axis " + std::to_string(first.axis) +
             " of it and " + describe(graph.node(layer.node)) + " along axis " + std::to_string(layer.axis) +
             "; per=tensor gives it one range";
  return "";
}

/// The weights that are chosen and have layers.
static Status chooseWeights(const InitializerGraph &graph, int64_t opset,
                            const std::vector<QuantizerSettings> &settings,
                            const std::function<int(const std::string &name)> &choose,
                            std::vector<Chosen> &chosen, std::vector<std::string> &others) {
  LayerFinder finder(graph);
  for (const auto &tensor : graph.graph.initializer()) {
    int number = choose(tensor.name());
    if (number < 0)
      continue;
    Chosen each{&tensor, {}, {}, static_cast<size_t>(number)};
    finder.find(tensor, each.roots, each.layers);
    if (each.layers.empty() || std::count(tensor.dims().begin(), tensor.dims().end(), 0)) {
      others.push_back(tensor.name());
      continue;
    }
    const QuantizerSettings &setting = settings[each.setting];
    if (std::string why = findObstacle(each, setting, opset, graph.graph); !why.empty())
      return Status::refusal(setting.flag + ": '" + tensor.name() + "' cannot be quantised: " + why);
    chosen.push_back(std::move(each));
  }
  return Status();
}

/// All quantisers of chosen weights, and of what their layers read: each value once for a setting.
static void writeAll(proto::GraphProto &graph, const std::vector<Chosen> &chosen,
                     const std::vector<QuantizerSettings> &settings, std::vector<FakeQuantizer> &quantizers) {
  QuantizerWriter writer(graph);
  std::set<std::string> weights;
  for (const Chosen &each : chosen)
    weights.insert(each.weight->name());
  std::map<std::pair<std::string, size_t>, std::vector<Reader>> data;
  std::vector<std::pair<std::string, size_t>> order;
  for (const Chosen &each : chosen)
    for (const Layer &layer : each.layers) {
      std::pair key(graph.node(layer.node).input(layer.data), each.setting);
      if (weights.count(key.first))
        continue;
      std::vector<Reader> &readers = data[key];
      if (readers.empty())
        order.push_back(key);
      readers.push_back({layer.node, layer.data});
    }
  auto finish = [&](FakeQuantizer quantizer, size_t setting, const std::vector<int> &layers) {
    quantizer.setting = setting;
    for (int layer : layers)
      quantizer.layers.push_back(graph.node(layer).output(0));
    quantizers.push_back(std::move(quantizer));
  };
  for (const Chosen &each : chosen) {
    const QuantizerSettings &setting = settings[each.setting];
    int64_t axis = each.layers.front().axis;
    std::vector<int> layers;
    for (const Layer &layer : each.layers)
      layers.push_back(layer.node);
    finish(writer.add(each.weight->name(), each.roots, setting, /*isWeight=*/true, axis,
                      setting.isPerChannel ? each.weight->dims(static_cast<int>(axis)) : -1),
           each.setting, layers);
  }
  for (const auto &key : order) {
    std::vector<int> layers;
    for (const Reader &reader : data[key])
      layers.push_back(reader.node);
    finish(writer.add(key.first, data[key], settings[key.second], /*isWeight=*/false, -1, -1), key.second,
           layers);
  }
  writer.finish();
}

Status addFakeQuantizers(std::shared_ptr<const Model> &model, const std::vector<QuantizerSettings> &settings,
                         const std::function<int(const std::string &name)> &choose, QuantizerReport &report) {
  if (const proto::NodeProto *node = findQuantized(model->getProto().graph()))
    return Status::refusal(settings.front().flag + ": the model is quantised already, by " + describe(*node) +
                           "; it is trained as it is without --qat");
  InitializerGraph graph(*model);
  std::vector<Chosen> chosen;
  ORTC_TRY(chooseWeights(graph, opsetOf(model->getProto().opset_import(), ""), settings, choose, chosen,
                         report.others));
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        writeAll(*proto.mutable_graph(), chosen, settings, report.quantizers);
        importOwnDomain(proto);
      },
      edited));
  model = std::move(edited);
  return Status();
}

} // namespace ortc::frontend
