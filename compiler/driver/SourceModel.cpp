// The ONNX graph that travels in an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/SourceModel.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ortc::driver {

std::set<std::string> initializerNames(const frontend::Model &model) {
  std::set<std::string> names;
  for (const auto &tensor : model.getProto().graph().initializer())
    names.insert(tensor.name());
  for (const auto &tensor : model.getProto().graph().sparse_initializer())
    names.insert(tensor.values().name());
  return names;
}

/// Calls `visit(name, elements)` for the float initializers of a graph. What overflows is refused later.
static void visitFloats(const proto::GraphProto &graph,
                        const std::function<void(const std::string &, uint64_t)> &visit) {
  auto add = [&](const std::string &name, int32_t type, const auto &dims) {
    using proto::TensorProto;
    if (type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
        type == TensorProto::BFLOAT16)
      visit(name, std::accumulate(dims.begin(), dims.end(), uint64_t(1), std::multiplies<uint64_t>()));
  };
  for (const auto &tensor : graph.initializer())
    add(tensor.name(), tensor.data_type(), tensor.dims());
  for (const auto &tensor : graph.sparse_initializer())
    add(tensor.values().name(), tensor.values().data_type(), tensor.dims());
}

/// The same for those of branches and loop bodies, outer ones first.
static void visitInnerFloats(const proto::GraphProto &graph,
                             const std::function<void(const std::string &, uint64_t)> &visit) {
  frontend::visitBodies(graph, [&](const proto::GraphProto &body) {
    visitFloats(body, visit);
    visitInnerFloats(body, visit);
  });
}

int64_t countFloatValues(const frontend::Model &model) {
  const proto::GraphProto &graph = model.getProto().graph();
  uint64_t count = 0;
  auto add = [&](const std::string &, uint64_t elements) { count += elements; };
  visitFloats(graph, add);
  visitInnerFloats(graph, add);
  return static_cast<int64_t>(count);
}

std::vector<std::pair<std::string, int64_t>> listInnerInitializers(const frontend::Model &model) {
  std::vector<std::pair<std::string, int64_t>> list;
  visitInnerFloats(model.getProto().graph(),
                   [&](const std::string &name, uint64_t elements) { list.emplace_back(name, elements); });
  return list;
}

std::optional<NamePattern> findNameList(const frontend::Model &model, const std::string &key) {
  std::optional<std::vector<std::string>> names;
  for (const auto &entry : model.getProto().metadata_props())
    if (entry.key() == key)
      names = splitNames(entry.value());
  if (!names)
    return std::nullopt;
  return NamePattern::list(std::move(*names), key + " of the model");
}

std::vector<std::string> listSources(const frontend::Model &model) {
  std::vector<std::string> sources;
  for (const auto &[name, origin] : frontend::findOrigins(model.getProto().graph()))
    sources.insert(sources.end(), origin.parameters.begin(), origin.parameters.end());
  return sources;
}

Expected<std::shared_ptr<const frontend::Model>> exposeValue(const frontend::Model &model,
                                                             const std::string &name) {
  const auto &graph = model.getProto().graph();
  auto isNamed = [&](const auto &value) { return value.name() == name; };
  bool isValue = std::any_of(graph.node().begin(), graph.node().end(), [&](const auto &node) {
    return std::find(node.output().begin(), node.output().end(), name) != node.output().end();
  });
  if (name.empty() || !isValue || std::any_of(graph.output().begin(), graph.output().end(), isNamed))
    return std::shared_ptr<const frontend::Model>();
  auto addOutput = [&](proto::ModelProto &proto) {
    auto *output = proto.mutable_graph()->add_output();
    for (const auto &value : proto.graph().value_info())
      if (isNamed(value))
        *output = value;
    output->set_name(name);
  };
  std::shared_ptr<const frontend::Model> edited;
  ORTC_TRY(model.edit(addOutput, edited));
  return edited;
}

Expected<artifact::Bytes> makeSource(const frontend::Model &model,
                                     const std::vector<artifact::Tensor> &tensors,
                                     const frontend::PackedWeights &packed) {
  std::set<std::string> kept, all;
  for (const artifact::Tensor &tensor : tensors) {
    all.insert(tensor.name);
    if (tensor.flags & ORTC_TENSOR_IN_MODEL)
      kept.insert(tensor.name);
  }
  for (const auto &[name, weight] : packed)
    if (all.count(weight->quantized))
      kept.insert(name);
  proto::ModelProto copy = model.getProto();
  for (auto &tensor : *copy.mutable_graph()->mutable_initializer()) {
    if (kept.count(tensor.name())) {
      frontend::dropData(tensor);
      continue;
    }
    if (tensor.external_data_size() == 0)
      continue;
    frontend::TensorData data;
    if (Status status = model.tensor(tensor, data); !status.isOk())
      return Status::refusal("initializer '" + tensor.name() + "': " + status.getMessage());
    frontend::dropData(tensor);
    tensor.set_raw_data(data.bytes.data(), data.bytes.size());
  }
  size_t bytes = copy.ByteSizeLong();
  if (bytes > (size_t(1) << 31) - 1)
    return Status::refusal(
        "the model without its weights is larger than 2 GiB; leave it out with --no-source");
  artifact::Bytes source(bytes);
  copy.SerializeWithCachedSizesToArray(source.data());
  return source;
}

} // namespace ortc::driver
