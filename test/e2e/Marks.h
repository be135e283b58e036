// Small models whose metadata say where gradients go.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

namespace ortc::test {

inline const std::vector<float> kX{0.5f, -1, 2, 0.25f, 3, -0.75f}, kW{0.3f, 0.9f, -0.4f};

inline proto::NodeProto *addNode(google::protobuf::RepeatedPtrField<proto::NodeProto> *nodes,
                                 const std::string &op, const std::vector<std::string> &inputs,
                                 const std::vector<std::string> &outputs, const std::string &domain = "") {
  proto::NodeProto *node = nodes->Add();
  node->set_op_type(op);
  node->set_domain(domain);
  node->set_name("node_" + outputs[0]);
  for (const std::string &input : inputs)
    node->add_input(input);
  for (const std::string &output : outputs)
    node->add_output(output);
  return node;
}

inline proto::AttributeProto *addAttribute(proto::NodeProto *node, const std::string &name, int type) {
  auto *attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(static_cast<proto::AttributeProto::AttributeType>(type));
  return attribute;
}

template <typename T>
void addInitializer(proto::GraphProto *graph, const std::string &name, int type,
                    const std::vector<int64_t> &dims, const std::vector<T> &values) {
  auto *tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t dim : dims)
    tensor->add_dims(dim);
  tensor->set_raw_data(engine::test::bytesOf(values));
}

/// `loss` is the sum of a value.
inline void addLoss(proto::GraphProto *graph, const std::string &value) {
  auto *sum = addNode(graph->mutable_node(), "ReduceSum", {value}, {"loss"});
  addAttribute(sum, "keepdims", proto::AttributeProto::INT)->set_i(0);
  describe(graph->add_output(), "loss", proto::TensorProto::FLOAT, {});
}

inline proto::ModelProto emptyModel() {
  proto::ModelProto model;
  model.set_ir_version(9);
  model.add_opset_import()->set_version(18);
  model.mutable_graph()->set_name("g");
  return model;
}

/// y = x * w, t = sin(y), loss = sum(y + t)
inline proto::ModelProto sineModel() {
  proto::ModelProto model = emptyModel();
  proto::GraphProto *graph = model.mutable_graph();
  describe(graph->add_input(), "x", proto::TensorProto::FLOAT, {2, 3});
  addInitializer(graph, "w", proto::TensorProto::FLOAT, {3}, kW);
  addNode(graph->mutable_node(), "Mul", {"x", "w"}, {"y"});
  addNode(graph->mutable_node(), "Sin", {"y"}, {"t"});
  addNode(graph->mutable_node(), "Add", {"y", "t"}, {"out"});
  addLoss(graph, "out");
  return model;
}

inline void mark(proto::ModelProto &model, const std::string &key, const std::string &value) {
  auto *entry = model.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

class MarksTest : public testing::Test {
protected:
  std::string write(const proto::ModelProto &model) {
    return folder.write("m.onnx", model.SerializeAsString());
  }

  Outcome train(const proto::ModelProto &model,
                const std::vector<std::string> &more = {"--loss", "output:loss"}) {
    std::vector<std::string> command{"train",       write(model), "-o",    folder / "a",
                                     "--gradients", "--target",   "native"};
    command.insert(command.end(), more.begin(), more.end());
    return runTool(command);
  }

  std::string writeData() {
    auto array = [](const std::vector<float> &values) {
      return engine::test::npyOf("<f4", "(2, 3)", engine::test::bytesOf(values));
    };
    return folder.write(
        "d.npz", engine::test::zip({{"x.npy", array(kX)}, {"label.npy", array(std::vector<float>(6))}}));
  }

  /// The gradients of the first step.
  std::map<std::string, Values> gradients(const proto::ModelProto &model,
                                          const std::vector<std::string> &more = {"--loss", "output:loss"}) {
    outcome = train(model, more);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    mustRun({"gradients", folder / "a", "--data", writeData(), "-o", folder / "g.safetensors", "--quiet"});
    return loadValues(folder / "g.safetensors");
  }

  /// That the gradient of w is the sum over the batch of x * factor(y).
  void expectFactor(const Values &w, const std::function<double(double)> &factor) {
    ASSERT_EQ(w.data.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      double wanted = 0;
      for (size_t b = 0; b < 2; ++b) {
        double x = double(kX[3 * b + i]);
        wanted += x * factor(x * double(kW[i]));
      }
      EXPECT_NEAR(w.data[i], wanted, 1e-5) << i;
    }
  }

  void expectRefusal(const proto::ModelProto &model, const std::string &text) {
    Outcome refused = train(model);
    EXPECT_EQ(refused.status, 2) << refused.errors;
    EXPECT_NE(refused.errors.find(text), std::string::npos) << refused.errors;
  }
  void expectSaid(const std::string &text) {
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << text << "\n" << outcome.errors;
  }

  TemporaryFolder folder;
  Outcome outcome;
};

} // namespace ortc::test
