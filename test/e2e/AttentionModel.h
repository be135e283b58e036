// Models of attention.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/e2e/Models.h"

#include <cmath>

namespace ortc::test {

struct AttentionSizes {
  int64_t batch, heads, keyHeads, rows, keys, depth, columns;
  bool isCausal = false, hasMask = false; ///< a mask is a sum with an input, [batch, 1, 1, keys]
  bool addsLargest = false; ///< to each result the largest score of its row; without a mask or groups
};

/// Queries, keys and values.
struct AttentionNumbers {
  std::vector<float> q, k, v;
};

/// A file whose output `y` is attention of the parameters `q`, `k` and `v`; `nothing`, zeros, is added to the queries.
inline std::string makeAttentionModel(const AttentionSizes &s, const AttentionNumbers &numbers) {
  proto::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(23);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  std::vector<int64_t> queries{s.batch, s.heads, s.rows, s.depth};
  auto parameter = [&](const std::string &name, const std::vector<int64_t> &dims,
                       const std::vector<float> &values) {
    auto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(proto::TensorProto::FLOAT);
    for (int64_t dim : dims)
      tensor->add_dims(dim);
    tensor->set_raw_data(values.data(), values.size() * 4);
  };
  describe(graph->add_input(), "nothing", proto::TensorProto::FLOAT, queries);
  describe(graph->add_output(), "y", proto::TensorProto::FLOAT, {s.batch, s.heads, s.rows, s.columns});
  parameter("q", queries, numbers.q);
  parameter("k", {s.batch, s.keyHeads, s.keys, s.depth}, numbers.k);
  parameter("v", {s.batch, s.keyHeads, s.keys, s.columns}, numbers.v);
  auto *sum = graph->add_node();
  sum->set_op_type("Add");
  sum->add_input("q"), sum->add_input("nothing"), sum->add_output("queries");
  if (s.addsLargest) {
    auto add = [&](const char *op, const std::vector<const char *> &from, const char *to) {
      auto *node = graph->add_node();
      node->set_op_type(op);
      for (const char *name : from)
        node->add_input(name);
      node->add_output(to);
      return node;
    };
    parameter("scale", {1}, {1 / std::sqrt(static_cast<float>(s.depth))});
    auto *axes = graph->add_initializer();
    axes->set_name("axes");
    axes->set_data_type(proto::TensorProto::INT64);
    axes->add_dims(1);
    axes->add_int64_data(3);
    auto *order = add("Transpose", {"k"}, "turned")->add_attribute();
    order->set_name("perm");
    order->set_type(proto::AttributeProto::INTS);
    for (int64_t dimension : {0, 1, 3, 2})
      order->add_ints(dimension);
    add("MatMul", {"queries", "turned"}, "products"), add("Mul", {"products", "scale"}, "scores");
    add("ReduceMax", {"scores", "axes"}, "largest"), add("Softmax", {"scores"}, "weights");
    add("MatMul", {"weights", "v"}, "mixed"), add("Add", {"mixed", "largest"}, "y");
    return model.SerializeAsString();
  }
  auto *node = graph->add_node();
  node->set_op_type("Attention");
  for (const char *name : {"queries", "k", "v"})
    node->add_input(name);
  if (s.hasMask) {
    describe(graph->add_input(), "mask", proto::TensorProto::FLOAT, {s.batch, 1, 1, s.keys});
    node->add_input("mask");
  }
  if (s.isCausal) {
    auto *attribute = node->add_attribute();
    attribute->set_name("is_causal");
    attribute->set_type(proto::AttributeProto::INT);
    attribute->set_i(1);
  }
  node->add_output("y");
  return model.SerializeAsString();
}

} // namespace ortc::test
