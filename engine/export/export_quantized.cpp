// Quantisers of --qat as those of the standard.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same formulas as in training (compiler/legalize/handlers/FakeQuantize.cpp). Weights are rounded here, to the very
// integers that steps computed with. A weight that several nodes outside of bodies read is written for each of them:
// ONNX Runtime changes integers for the kernel that reads them, and names what it makes of them by the initializer.
#include "engine/export/export_quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "compiler/frontend/FakeQuantizers.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "engine/export/exported_data.h"

namespace ortc::engine {

namespace {

/// What a quantiser rounds by, for each channel or once.
struct Grid {
  std::vector<float> scale;
  std::vector<int32_t> zeroPoint;
  int32_t lowest, highest; ///< integers
  bool isSeen = true;
};

class QuantizedWriter {
public:
  QuantizedWriter(const std::string &where, proto::ModelProto &model)
      : where(where), model(model), graph(*model.mutable_graph()), names(graph),
        readers(frontend::listReaders(graph)) {
    for (const auto &tensor : graph.initializer())
      initializers[tensor.name()] = &tensor;
  }

  Status run(int64_t &count);

private:
  Status readGrid(const proto::NodeProto &quantizer, Grid &grid) const;
  Status rangeOf(const proto::NodeProto &quantizer, int operand, std::vector<double> &values) const;
  void replace(const proto::NodeProto &quantizer, const Grid &grid);
  void quantizeWeight(const proto::NodeProto &quantizer, const proto::TensorProto &weight, const Grid &grid);
  void dequantizeWeight(const proto::NodeProto &quantizer, const proto::TensorProto &weight, const Grid &grid,
                        const std::vector<int8_t> &integers, const std::string &output);
  void keep(const proto::NodeProto &node);
  void quantizeValue(const proto::NodeProto &quantizer, const Grid &grid);
  proto::NodeProto &addNode(const char *type, const std::vector<std::string> &inputs,
                            const std::string &output);
  proto::TensorProto &addTensor(const std::string &name, int32_t type, bool isVector, size_t count,
                                std::string bytes);
  std::string addScales(const std::string &tensor, bool isVector, const Grid &grid);
  std::string addZeroPoints(const std::string &tensor, bool isVector, int32_t type, const Grid &grid);
  void finish();

  const std::string &where;
  proto::ModelProto &model;
  proto::GraphProto &graph;
  frontend::NewNames names;
  std::map<std::string, std::vector<frontend::Reader>> readers;
  std::map<std::string, const proto::TensorProto *> initializers;
  std::map<std::string, std::vector<std::string>> copies; ///< of a weight, for readers to come
  std::vector<proto::NodeProto> nodes;                    ///< of the new graph
  std::vector<proto::TensorProto> tensors;                ///< new ones
};

} // namespace

static bool isQuantizer(const proto::NodeProto &node) {
  return frontend::isOwn(node, frontend::kFakeQuantize);
}

/// As bytes of a tensor.
template <typename Element> static std::string bytesOf(const std::vector<Element> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Element)};
}

static bool isPerChannel(const proto::NodeProto &quantizer) {
  return frontend::findAttribute(quantizer, "axis") != nullptr;
}

Status QuantizedWriter::rangeOf(const proto::NodeProto &quantizer, int operand,
                                std::vector<double> &values) const {
  auto found = initializers.find(quantizer.input(operand));
  if (found == initializers.end())
    return Status::failure(where + ": its graph has no range '" + quantizer.input(operand) + "' for '" +
                           quantizer.input(0) + "'; compile the artifact again");
  values = valuesOf(*found->second);
  return Status();
}

Status QuantizedWriter::readGrid(const proto::NodeProto &quantizer, Grid &grid) const {
  std::vector<double> least, most, offset;
  ORTC_TRY(rangeOf(quantizer, 1, least));
  ORTC_TRY(rangeOf(quantizer, 2, most));
  if (quantizer.input_size() > 3)
    ORTC_TRY(rangeOf(quantizer, 3, offset));
  if (least.empty() || least.size() != most.size() || (!offset.empty() && offset.size() != least.size()))
    return Status::failure(where + ": the range of '" + quantizer.input(0) +
                           "' is damaged; compile the artifact again");
  auto bits = static_cast<int>(frontend::intOf(quantizer, "bits", 8));
  bool isSymmetric = frontend::intOf(quantizer, "symmetric", 0);
  grid.lowest = isSymmetric ? -(1 << (bits - 1)) : 0;
  grid.highest = grid.lowest + (1 << bits) - 1;
  double steps = grid.highest - grid.lowest;
  constexpr float kSmallest = std::numeric_limits<float>::epsilon();
  for (size_t i = 0; i < least.size(); ++i) {
    if (least[i] > most[i]) {
      grid.isSeen = false;
      return Status();
    }
    auto low = std::min(static_cast<float>(least[i]), 0.0f),
         high = std::max(static_cast<float>(most[i]), 0.0f);
    double span = isSymmetric ? std::max(-low, high) * (2 / steps) : (high - low) * (1 / steps);
    float scale = std::max(static_cast<float>(span), kSmallest);
    float zeroPoint = isSymmetric ? 0 : std::clamp(-std::nearbyint(low / scale), 0.0f, float(grid.highest));
    if (!offset.empty())
      scale = std::max(scale + static_cast<float>(offset[i]), kSmallest);
    if (!std::isfinite(scale) || std::isnan(least[i]) || std::isnan(most[i]))
      return Status::failure(where + ": the range of '" + quantizer.input(0) + "' is " +
                             std::to_string(least[i]) + " to " + std::to_string(most[i]) +
                             ", so it cannot be quantised: values of training were not finite; go back to an "
                             "earlier checkpoint");
    grid.scale.push_back(scale);
    grid.zeroPoint.push_back(static_cast<int32_t>(zeroPoint));
  }
  return Status();
}

proto::NodeProto &QuantizedWriter::addNode(const char *type, const std::vector<std::string> &inputs,
                                           const std::string &output) {
  proto::NodeProto &node = nodes.emplace_back();
  node.set_op_type(type);
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(output);
  node.set_name(names.make(output + "." + type));
  return node;
}

proto::TensorProto &QuantizedWriter::addTensor(const std::string &name, int32_t type, bool isVector,
                                               size_t count, std::string bytes) {
  proto::TensorProto &tensor = tensors.emplace_back();
  tensor.set_name(names.make(name));
  tensor.set_data_type(type);
  if (isVector)
    tensor.add_dims(static_cast<int64_t>(count));
  tensor.set_raw_data(std::move(bytes));
  return tensor;
}

std::string QuantizedWriter::addScales(const std::string &tensor, bool isVector, const Grid &grid) {
  return addTensor(tensor + "_scale", proto::TensorProto::FLOAT, isVector, grid.scale.size(),
                   bytesOf(grid.scale))
      .name();
}

std::string QuantizedWriter::addZeroPoints(const std::string &tensor, bool isVector, int32_t type,
                                           const Grid &grid) {
  std::vector<uint8_t> values(grid.zeroPoint.begin(), grid.zeroPoint.end()); // of int8, they are all zero
  return addTensor(tensor + "_zero_point", type, isVector, values.size(), bytesOf(values)).name();
}

/// The weight as integers and a DequantizeLinear behind them, for each reader.
void QuantizedWriter::quantizeWeight(const proto::NodeProto &quantizer, const proto::TensorProto &weight,
                                     const Grid &grid) {
  std::vector<double> values = valuesOf(weight);
  bool isVector = isPerChannel(quantizer);
  auto axis = static_cast<int>(frontend::intOf(quantizer, "axis", 0));
  size_t inner = 1; // elements of one channel that lie together
  for (int i = axis + 1; isVector && i < weight.dims_size(); ++i)
    inner *= static_cast<size_t>(weight.dims(i));
  std::vector<int8_t> integers;
  integers.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    float scale = grid.scale[isVector ? i / inner % grid.scale.size() : 0], inverse = 1 / scale;
    float rounded = std::nearbyint(static_cast<float>(values[i]) * inverse);
    integers.push_back(static_cast<int8_t>(std::clamp(rounded, float(grid.lowest), float(grid.highest))));
  }
  const std::string &output = quantizer.output(0);
  dequantizeWeight(quantizer, weight, grid, integers, output);
  for (size_t reader = 1; reader < readers[output].size(); ++reader) {
    copies[output].push_back(names.make(output));
    dequantizeWeight(quantizer, weight, grid, integers, copies[output].back());
  }
}

void QuantizedWriter::dequantizeWeight(const proto::NodeProto &quantizer, const proto::TensorProto &weight,
                                       const Grid &grid, const std::vector<int8_t> &integers,
                                       const std::string &output) {
  bool isVector = isPerChannel(quantizer);
  proto::TensorProto &data =
      addTensor(weight.name() + "_quantized", proto::TensorProto::INT8, false, 0, bytesOf(integers));
  *data.mutable_dims() = weight.dims();
  std::string name = data.name(), scales = addScales(weight.name(), isVector, grid);
  std::string zeros = addZeroPoints(weight.name(), isVector, proto::TensorProto::INT8, grid);
  proto::NodeProto &node = addNode("DequantizeLinear", {name, scales, zeros}, output);
  if (const auto *attribute = frontend::findAttribute(quantizer, "axis"))
    *node.add_attribute() = *attribute;
}

/// QuantizeLinear and DequantizeLinear; integers of fewer bits than 8 are cut off before.
void QuantizedWriter::quantizeValue(const proto::NodeProto &quantizer, const Grid &grid) {
  const std::string &value = quantizer.input(0);
  std::string x = value, scale = addScales(value, false, grid);
  bool isSymmetric = grid.lowest < 0;
  int32_t type = isSymmetric ? proto::TensorProto::INT8 : proto::TensorProto::UINT8;
  std::string zero = addZeroPoints(value, false, type, grid);
  if (grid.highest - grid.lowest < 255) {
    auto bound = [&](const char *name, int32_t integer) {
      std::vector<float> real{float(integer - grid.zeroPoint[0]) * grid.scale[0]};
      return addTensor(value + name, proto::TensorProto::FLOAT, false, 1, bytesOf(real)).name();
    };
    std::string low = bound("_low", grid.lowest), high = bound("_high", grid.highest);
    x = addNode("Clip", {x, low, high}, names.make(value + "_clipped")).output(0);
  }
  std::string integers =
      addNode("QuantizeLinear", {x, scale, zero}, names.make(value + "_quantized")).output(0);
  addNode("DequantizeLinear", {integers, scale, zero}, quantizer.output(0));
}

/// A node of the model, which reads a copy of a weight that others read, too.
void QuantizedWriter::keep(const proto::NodeProto &node) {
  proto::NodeProto &kept = nodes.emplace_back(node);
  for (std::string &input : *kept.mutable_input())
    if (auto found = copies.find(input); found != copies.end() && !found->second.empty()) {
      input = std::move(found->second.back());
      found->second.pop_back();
    }
}

void QuantizedWriter::replace(const proto::NodeProto &quantizer, const Grid &grid) {
  auto weight = initializers.find(quantizer.input(0));
  if (!grid.isSeen)
    addNode("Identity", {quantizer.input(0)}, quantizer.output(0));
  else if (weight != initializers.end() && grid.lowest < 0)
    quantizeWeight(quantizer, *weight->second, grid);
  else
    quantizeValue(quantizer, grid);
}

/// Takes in the new nodes and tensors, and out what nothing reads any more.
void QuantizedWriter::finish() {
  std::set<std::string> taken; // by quantisers
  for (const auto &node : graph.node())
    if (isQuantizer(node))
      taken.insert(node.input().begin(), node.input().end());
  graph.clear_node();
  for (proto::NodeProto &node : nodes)
    *graph.add_node() = std::move(node);
  std::set<std::string> read;
  auto visit = [&](auto &self, const proto::GraphProto &each) -> void {
    for (const auto &node : each.node())
      read.insert(node.input().begin(), node.input().end());
    for (const auto &output : each.output())
      read.insert(output.name());
    frontend::visitBodies(each, [&](const proto::GraphProto &body) { self(self, body); });
  };
  visit(visit, graph);
  std::set<std::string> removed;
  for (const std::string &name : taken)
    if (initializers.count(name) && !read.count(name))
      removed.insert(name);
  auto isGone = [&](const auto &named, int) { return removed.count(named.name()) != 0; };
  frontend::removeIf(*graph.mutable_initializer(), isGone);
  frontend::removeIf(*graph.mutable_input(), isGone);
  frontend::removeIf(*graph.mutable_value_info(), isGone);
  for (proto::TensorProto &tensor : tensors)
    *graph.add_initializer() = std::move(tensor);
  frontend::dropOwnDomain(model);
  // From IR version 4 on, initializers need not be inputs, too.
  model.set_ir_version(std::max<int64_t>(model.ir_version(), 4));
}

Status QuantizedWriter::run(int64_t &count) {
  count = 0;
  bool isAnySeen = false;
  for (const auto &node : graph.node()) {
    if (!isQuantizer(node)) {
      keep(node);
      continue;
    }
    Grid grid;
    ORTC_TRY(readGrid(node, grid));
    replace(node, grid);
    count += grid.isSeen;
    isAnySeen |= grid.isSeen;
  }
  if (!isAnySeen)
    return Status::refusal(where +
                           ": no training step has seen ranges to quantise by; train at least one, and give "
                           "its checkpoint with --load");
  finish();
  return Status();
}

Status writeQuantized(const std::string &where, proto::ModelProto &model, int64_t &count) {
  count = 0;
  if (std::none_of(model.graph().node().begin(), model.graph().node().end(), isQuantizer))
    return Status();
  return QuantizedWriter(where, model).run(count);
}

} // namespace ortc::engine
