// A model with the habits of exporters: an equal parameter behind an Identity, merged norms, a tied embedding
// written twice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstring>
#include <gtest/gtest.h>
#include <set>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using proto::TensorProto;

namespace {

class SharingTest : public testing::Test {
protected:
  SharingTest() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "ids", TensorProto::INT64, {4});
    describe(graph->add_output(), "y", TensorProto::FLOAT, {4, 5});
    std::vector<float> table(15), head(15);
    for (size_t i = 0; i < 15; ++i)
      table[i] = head[(i % 3) * 5 + i / 3] = float(int(i * 7 % 11)) / 8 - 0.5f;
    addInitializer("embed.weight", {5, 3}, table);
    addInitializer("head", {3, 5}, head);
    addInitializer("first.weight", {3}, {1, 1, 1});
    addInitializer("zeros", {3}, {0, 0, 0});
    addNode("Identity", {"first.weight"}, "second.weight");
    addNode("Gather", {"embed.weight", "ids"}, "e");
    addNode("LayerNormalization", {"e", "first.weight", "zeros"}, "a");
    addNode("LayerNormalization", {"a", "second.weight", "zeros"}, "b");
    addNode("MatMul", {"b", "head"}, "y");
    std::vector<uint8_t> ids(64, 0), labels(64, 0);
    for (size_t i = 0; i < 8; ++i) {
      ids[i * 8] = uint8_t(i % 5);
      labels[i * 8] = uint8_t(i * 3 % 5);
    }
    data = folder / "data.npz";
    EXPECT_TRUE(
        engine::writeNpz(data, {{"ids", DataType::Int64, {8}, ids}, {"label", DataType::Int64, {8}, labels}})
            .isOk());
    path = folder.write("m.onnx", model.SerializeAsString());
  }

  static void describe(proto::ValueInfoProto *value, const std::string &name, int type,
                       const std::vector<int64_t> &dims) {
    value->set_name(name);
    auto *tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    for (int64_t dim : dims)
      tensor->mutable_shape()->add_dim()->set_dim_value(dim);
  }
  void addInitializer(const std::string &name, const std::vector<int64_t> &dims,
                      const std::vector<float> &values) {
    TensorProto *tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(TensorProto::FLOAT);
    tensor->mutable_dims()->Add(dims.begin(), dims.end());
    std::string bytes(values.size() * 4, '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor->set_raw_data(bytes);
  }
  void addNode(const std::string &op, const std::vector<std::string> &inputs, const std::string &output) {
    proto::NodeProto *node = graph->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
  }
  Outcome compile(std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"train", path, "-o", folder / "a", "--target", "native", "--gradients", "--quiet"});
    return mustRun(flags);
  }
  /// Names of the gradients.
  std::set<std::string> findTrained() {
    mustRun({"gradients", folder / "a", "--data", data, "-o", folder / "g.safetensors", "--quiet"});
    std::set<std::string> names;
    for (const auto &[name, values] : loadValues(folder / "g.safetensors"))
      names.insert(name);
    names.erase("loss");
    return names;
  }

  TemporaryFolder folder;
  std::string path, data;
  proto::ModelProto model;
  proto::GraphProto *graph;
};

TEST_F(SharingTest, SaysWhatTheExporterMayHaveDone) {
  Outcome outcome = compile({});
  EXPECT_EQ(findTrained(),
            (std::set<std::string>{"embed.weight", "head", "first.weight", "second.weight", "zeros"}));
  for (const char *text : {"--tie second.weight=first.weight", "--tie head=embed.weight", "--untie zeros"})
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << text << "\n" << outcome.errors;
}

TEST_F(SharingTest, TheFlagsPutItRight) {
  compile({"--tie", "head=embed.weight", "--untie", "zeros"});
  EXPECT_EQ(findTrained(),
            (std::set<std::string>{"embed.weight", "first.weight", "second.weight", "zeros", "b.zeros"}));
  mustRun(
      {"run", folder / "a", "--data", data, "--epochs", "2", "--save", folder / "s.safetensors", "--quiet"});
  mustRun({"export", folder / "a", "--load", folder / "s.safetensors", "-o", folder / "e.onnx", "--quiet"});
  // What comes out says it all: it needs no flags, and gives the same predictions.
  mustRun(
      {"train", folder / "e.onnx", "-o", folder / "b", "--loss", "none", "--target", "native", "--quiet"});
  mustRun({"predict", folder / "a", "--load", folder / "s.safetensors", "--data", data, "-o",
           folder / "pa.npz", "--quiet"});
  mustRun({"predict", folder / "b", "--data", data, "-o", folder / "pb.npz", "--quiet"});
  auto a = loadValues(folder / "pa.npz")["y"].data, b = loadValues(folder / "pb.npz")["y"].data;
  ASSERT_EQ(a.size(), 2u * 4 * 5);
  ASSERT_EQ(b.size(), a.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5);
}

/// An initializer of a branch is a constant; the summary accounts for it.
TEST_F(SharingTest, InitializersOfBranchesAreListed) {
  TensorProto *condition = graph->add_initializer();
  condition->set_name("condition");
  condition->set_data_type(TensorProto::BOOL);
  condition->set_raw_data(std::string(1, '\1'));
  graph->mutable_output(0)->set_name("z");
  addNode("If", {"condition"}, "z");
  for (const char *name : {"then_branch", "else_branch"}) {
    proto::AttributeProto *attribute =
        graph->mutable_node(graph->node_size() - 1)->mutable_attribute()->Add();
    attribute->set_name(name);
    attribute->set_type(proto::AttributeProto::GRAPH);
    proto::GraphProto *outer = graph;
    graph = attribute->mutable_g();
    graph->set_name(name);
    describe(graph->add_output(), name, TensorProto::FLOAT, {4, 5});
    addInitializer("inner", {5}, {1, 2, 3, 4, 5});
    addNode("Mul", {"y", "inner"}, name);
    graph = outer;
  }
  Outcome outcome = mustRun({"train", folder.write("if.onnx", model.SerializeAsString()), "-o", folder / "a",
                             "--target", "native"});
  EXPECT_NE(outcome.text.find("trained    5 tensors, 39 of the 46 values in the file's float initializers"),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("inner, inner: 10 values, it belongs to a branch or a loop body"),
            std::string::npos)
      << outcome.text;
}

TEST_F(SharingTest, RefusesWhatIsNotThere) {
  for (const char *flag :
       {"--tie=head=zeros", "--tie=head=nothing", "--untie=head", "--untie=nothing", "--tie=head"})
    EXPECT_EQ(runTool({"train", path, "-o", folder / "a", flag}).status, 2) << flag;
}

} // namespace
