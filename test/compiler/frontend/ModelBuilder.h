// Small models for the tests of the frontend.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "compiler/frontend/onnx.pb.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ortc::frontend::test {

inline proto::NodeProto *addNode(google::protobuf::RepeatedPtrField<proto::NodeProto> *nodes,
                                 const std::string &op, std::initializer_list<std::string> inputs,
                                 std::initializer_list<std::string> outputs, const std::string &name = "") {
  proto::NodeProto *node = nodes->Add();
  node->set_op_type(op);
  for (const std::string &input : inputs)
    node->add_input(input);
  for (const std::string &output : outputs)
    node->add_output(output);
  if (!name.empty())
    node->set_name(name);
  return node;
}

inline proto::NodeProto *addNode(proto::GraphProto *graph, const std::string &op,
                                 std::initializer_list<std::string> inputs,
                                 std::initializer_list<std::string> outputs, const std::string &name = "") {
  return addNode(graph->mutable_node(), op, inputs, outputs, name);
}

inline proto::ValueInfoProto *setType(proto::ValueInfoProto *value, const std::string &name,
                                      std::initializer_list<int64_t> dims) {
  value->set_name(name);
  auto *tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(proto::TensorProto::FLOAT);
  tensor->mutable_shape();
  for (int64_t dim : dims)
    tensor->mutable_shape()->add_dim()->set_dim_value(dim);
  return value;
}

/// A float initializer of zeros in raw data.
inline proto::TensorProto *addInitializer(proto::GraphProto *graph, const std::string &name,
                                          std::initializer_list<int64_t> dims) {
  proto::TensorProto *tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(proto::TensorProto::FLOAT);
  size_t bytes = 4;
  for (int64_t dim : dims) {
    tensor->add_dims(dim);
    bytes *= static_cast<size_t>(dim);
  }
  tensor->set_raw_data(std::string(bytes, '\0'));
  return tensor;
}

inline proto::AttributeProto *addAttribute(proto::NodeProto *node, const std::string &name,
                                           proto::AttributeProto::AttributeType type) {
  proto::AttributeProto *attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

/// Lets a tensor lie in another file.
inline void setExternal(proto::TensorProto *tensor,
                        std::initializer_list<std::pair<const char *, const char *>> entries) {
  tensor->clear_raw_data();
  tensor->set_data_location(proto::TensorProto::EXTERNAL);
  for (auto [key, value] : entries) {
    auto *entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

/// x[2,3] -> MatMul with the initializer w[3,4] -> Relu -> y[2,4], at opset 17.
inline proto::ModelProto smallModel() {
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  proto::GraphProto *graph = model.mutable_graph();
  graph->set_name("g");
  setType(graph->add_input(), "x", {2, 3});
  setType(graph->add_output(), "y", {2, 4});
  addInitializer(graph, "w", {3, 4});
  addNode(graph, "MatMul", {"x", "w"}, {"h"}, "dense");
  addNode(graph, "Relu", {"h"}, {"y"}, "act");
  return model;
}

/// The message of the checker, or "" for a model that passes.
inline std::string check(const std::string &bytes, const std::string &folder = ".",
                         const Limits &limits = {}) {
  std::shared_ptr<const Model> model;
  return Model::parse(bytes, "m.onnx", folder, model, limits).getMessage();
}
inline std::string check(const proto::ModelProto &model, const std::string &folder = ".",
                         const Limits &limits = {}) {
  return check(model.SerializeAsString(), folder, limits);
}

} // namespace ortc::frontend::test
