// Which rows of the data are samples: what the model declares decides, and where it does not, a note says
// what is taken.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Dimensions as a file declares them: numbers, symbols, "" for neither.
using Dims = std::vector<std::string>;
/// nullopt: no shape is declared.
using Declared = std::optional<Dims>;

void declare(proto::ValueInfoProto *value, const std::string &name, const Declared &dims) {
  value->set_name(name);
  auto *tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(proto::TensorProto::FLOAT);
  for (const std::string &dim : dims.value_or(Dims())) {
    auto *added = tensor->mutable_shape()->add_dim();
    if (!dim.empty() && std::isdigit(static_cast<unsigned char>(dim[0])))
      added->set_dim_value(std::stoll(dim));
    else if (!dim.empty())
      added->set_dim_param(dim);
  }
}

void addNode(proto::GraphProto *graph, const char *type, const std::vector<std::string> &inputs,
             const std::string &output) {
  auto *node = graph->add_node();
  node->set_op_type(type);
  for (const std::string &input : inputs)
    node->add_input(input);
  node->add_output(output);
}

class BatchTest : public testing::Test {
protected:
  /// The products of the inputs and a weight [3, 4], from left to right; with its dimensions swapped if asked.
  std::string write(const std::vector<std::pair<std::string, Dims>> &inputs, const Declared &output,
                    bool isTransposed = false) {
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    auto *weight = graph->add_initializer();
    weight->set_name("w");
    weight->set_data_type(proto::TensorProto::FLOAT);
    weight->add_dims(3);
    weight->add_dims(4);
    for (int i = 0; i < 12; ++i)
      weight->add_float_data(float(i * 5 % 7) / 4 - 0.5f);
    std::string product = inputs[0].first;
    for (size_t i = 0; i < inputs.size(); ++i) {
      declare(graph->add_input(), inputs[i].first, inputs[i].second);
      if (i)
        addNode(graph, "MatMul", {product, inputs[i].first}, "p" + std::to_string(i));
      product = i ? "p" + std::to_string(i) : product;
    }
    addNode(graph, "MatMul", {product, "w"}, isTransposed ? "p" : "y");
    if (isTransposed)
      addNode(graph, "Transpose", {"p"}, "y");
    declare(graph->add_output(), "y", output);
    return folder.write("model.onnx", model.SerializeAsString());
  }
  void compile(const std::string &model, const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"train",  model,     "-o",          folder / "a", "--target",
                                       "native", "--quiet", "--optimizer", "sgd:lr=0"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
  }
  /// Rows of made-up numbers for arrays of these names and widths.
  void writeData(const std::vector<std::pair<std::string, int64_t>> &arrays, int64_t rows) {
    std::vector<engine::OutputArray> written;
    unsigned state = 1;
    for (const auto &[name, width] : arrays) {
      std::vector<float> values(size_t(rows * width));
      for (float &value : values)
        value = float((state = state * 1664525u + 1013904223u) >> 20) / 2048 - 1;
      auto first = reinterpret_cast<const uint8_t *>(values.data());
      written.push_back({name, DataType::Float32, {rows, width}, {first, first + values.size() * 4}});
    }
    EXPECT_TRUE(engine::writeNpz(data, written).isOk());
  }
  Outcome run(const std::vector<std::string> &flags = {}) {
    std::vector<std::string> arguments{"run",       folder / "a",       "--data", data,
                                       "--metrics", folder / "m.jsonl", "--save", folder / "ck"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return mustRun(arguments);
  }
  /// The rate is 0, so the losses are those of the slices, in some order.
  void expectWholeSlices() {
    run({"--no-shuffle"});
    std::vector<double> inOrder = loadLosses(folder / "m.jsonl");
    Outcome outcome = run();
    std::vector<double> shuffled = loadLosses(folder / "m.jsonl");
    ASSERT_EQ(inOrder.size(), 6u);
    EXPECT_NE(inOrder, shuffled) << "slices do change places";
    std::sort(inOrder.begin(), inOrder.end());
    std::sort(shuffled.begin(), shuffled.end());
    EXPECT_EQ(inOrder, shuffled);
    EXPECT_NE(outcome.errors.find("whole slices change places"), std::string::npos) << outcome.errors;
  }
  /// What the manifest says of the batch, by name: true, false, null.
  nlohmann::json readBatches() {
    nlohmann::json found,
        manifest = nlohmann::json::parse(readFile(folder / "a/manifest.json"))["bindings"][0];
    for (const char *key : {"inputs", "outputs"})
      for (const auto &value : manifest[key])
        found[value["name"].get<std::string>()] = value.value("batch", nlohmann::json());
    return found;
  }

  TemporaryFolder folder;
  std::string data = folder / "data.npz";
};

TEST_F(BatchTest, RowsOfAGraphStayTogether) {
  compile(write({{"a", {"4", "4"}}, {"x", {"batch", "3"}}}, Dims{"batch", "4"}),
          {"--loss", "mse", "--shape", "batch=4"});
  writeData({{"a", 4}, {"x", 3}, {"label", 4}}, 24);
  expectWholeSlices();
}

TEST_F(BatchTest, LabelsWithClassesInFrontStayTogether) {
  compile(write({{"x", {"batch", "3"}}}, Dims{"4", "batch"}, true), {"--loss", "mse", "--shape", "batch=4"});
  writeData({{"x", 3}, {"label", 4}}, 24);
  expectWholeSlices();
}

/// Slices [classes, batch] follow one another along the batch, also where both are of one size, and repeated samples
/// are left out.
TEST_F(BatchTest, PredictionsFollowTheBatch) {
  compile(write({{"x", {"batch", "3"}}}, Dims{"4", "batch"}, true), {"--loss", "mse", "--shape", "batch=4"});
  writeData({{"x", 3}}, 6);
  Outcome outcome = mustRun({"predict", folder / "a", "--data", data, "-o", folder / "y.npz"});
  auto inputs = loadValues(data), predicted = loadValues(folder / "y.npz");
  const Values &x = valuesOf(inputs, "x"), &y = valuesOf(predicted, "y");
  ASSERT_EQ(y.shape, (Shape{4, 6}));
  for (size_t c = 0; c < 4; ++c)
    for (size_t n = 0; n < 6; ++n) {
      double wanted = 0;
      for (size_t k = 0; k < 3; ++k)
        wanted += x.data[n * 3 + k] * (double((k * 4 + c) * 5 % 7) / 4 - 0.5);
      EXPECT_NEAR(y.data[c * 6 + n], wanted, 1e-6)
          << c << " " << n; // three products of numbers below 2, in float32
    }
  EXPECT_NE(outcome.errors.find("the last slice has 2 samples and is filled to 4"), std::string::npos)
      << outcome.errors;
}

TEST_F(BatchTest, WhatAFixedModelDoesNotSayIsTold) {
  const std::string note = "is taken for a batch";
  auto has = [&](const Outcome &outcome) { return outcome.errors.find(note) != std::string::npos; };
  compile(write({{"a", {"4", "4"}}, {"x", {"4", "3"}}}, Dims{"4", "4"}), {"--loss", "mse"});
  writeData({{"a", 4}, {"x", 3}, {"label", 4}}, 24);
  EXPECT_TRUE(has(run()));
  EXPECT_FALSE(has(run({"--no-shuffle"})));
  EXPECT_FALSE(has(run({"--quiet"})));
  EXPECT_FALSE(has(run({"--steps", "0"})));
  compile(write({{"x", {"1", "3"}}}, Dims{"1", "4"}), {"--loss", "mse"}); // one sample a step
  EXPECT_FALSE(has(run()));
  compile(write({{"x", {"batch", "3"}}}, Dims{"batch", "4"}), {"--loss", "mse", "--shape", "batch=4"});
  EXPECT_FALSE(has(run()));
  compile(write({{"x", {"batch", "3"}}}, std::nullopt, true), {"--loss", "mse", "--shape", "batch=4"});
  EXPECT_TRUE(has(run()));
}

TEST_F(BatchTest, TheManifestHasWhatTheModelDeclares) {
  using Json = nlohmann::json;
  const Dims x{"batch", "3"};
  struct Case {
    std::vector<std::pair<std::string, Dims>> inputs;
    Declared output;
    bool isTransposed;
    const char *loss;
    Json expected;
  };
  const Case cases[] = {
      {{{"x", x}}, Dims{"batch", "4"}, false, "mse", {{"x", true}, {"label", true}, {"y", true}}},
      {{{"x", x}}, Dims{"made_up", "4"}, false, "mse", {{"x", true}, {"label", true}, {"y", nullptr}}},
      {{{"x", x}}, Dims{"", "4"}, false, "mse", {{"x", true}, {"label", nullptr}, {"y", nullptr}}},
      {{{"x", x}}, std::nullopt, false, "mse", {{"x", true}, {"label", nullptr}, {"y", nullptr}}},
      {{{"x", x}}, Dims{"4", "batch"}, true, "mse", {{"x", true}, {"label", false}, {"y", false}}},
      {{{"x", x}}, Dims{"made_up", "batch"}, true, "mse", {{"x", true}, {"label", false}, {"y", false}}},
      // Class indices: what is left of [4, batch] without its classes.
      {{{"x", x}},
       Dims{"4", "batch"},
       true,
       "cross_entropy:axis=0",
       {{"x", true}, {"label", true}, {"y", false}}},
      {{{"a", {"n", "batch"}}, {"x", x}},
       Dims{"n", "4"},
       false,
       "mse",
       {{"a", true}, {"x", false}, {"label", true}, {"y", true}}},
      {{{"a", {"", "batch"}}, {"x", x}},
       Dims{"made_up", "4"},
       false,
       "mse",
       {{"a", false}, {"x", true}, {"label", true}, {"y", nullptr}}},
      {{{"x", {"4", "3"}}},
       Dims{"4", "4"},
       false,
       "mse",
       {{"x", nullptr}, {"label", nullptr}, {"y", nullptr}}},
  };
  for (const Case &each : cases) {
    std::vector<std::string> flags{"--loss", each.loss, "--shape", "x=4x3"};
    if (each.inputs.size() > 1)
      flags.insert(flags.end(), {"--shape", "a=4x4"});
    compile(write(each.inputs, each.output, each.isTransposed), flags);
    EXPECT_EQ(readBatches(), each.expected) << each.expected;
  }
}

TEST_F(BatchTest, TheManifestHasTheAxisOfTheBatch) {
  const std::tuple<Declared, bool, nlohmann::json> cases[] = {
      {Dims{"batch", "4"}, false, nullptr},    {Dims{"4", "batch"}, true, 1},
      {Dims{"made_up", "batch"}, true, 1},     {Dims{"4", "made_up"}, true, nullptr},
      {Dims{"batch", "batch"}, true, nullptr}, {std::nullopt, true, nullptr}};
  for (const auto &[output, isTransposed, expected] : cases) {
    compile(write({{"x", {"batch", "3"}}}, output, isTransposed), {"--loss", "mse", "--shape", "batch=4"});
    nlohmann::json manifest = nlohmann::json::parse(readFile(folder / "a/manifest.json"));
    EXPECT_EQ(manifest["bindings"][0]["outputs"][0].value("batch_axis", nlohmann::json()), expected);
  }
}

} // namespace
