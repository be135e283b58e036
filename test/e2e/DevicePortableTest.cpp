// With portable numerics a device trains to the bits that the baseline of x86-64 trains to; with fast ones it may sum
// long rows and deep products in parts, and stays as near as rounding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <regex>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

constexpr int kSteps = 5;

class DevicePortableTest : public testing::TestWithParam<std::string> {
protected:
  /// One artifact for x86-64 and sm_80.
  void compile(const std::string &model, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"train", model, "-o", folder / "artifact", "--quiet", "--target", "x86-64",
                                 "--target", "sm_80"});
    Outcome outcome = runTool(flags);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
  }

  /// Trains on a device and returns the file of the checkpoint.
  std::string train(const std::string &data, const std::string &device) {
    std::string file = folder / (device + ".safetensors");
    mustRun({"run", folder / "artifact", "--data", data, "--steps", std::to_string(kSteps), "--no-shuffle",
             "--quiet", "--device", device, "--save", file});
    return readFile(file);
  }

  TemporaryFolder folder;
};

TEST_P(DevicePortableTest, HasTheBitsOfProcessors) {
  ZooEntry entry(GetParam());
  for (const char *optimizer : {"sgd", "adamw"}) {
    std::vector<std::string> flags{"--numerics", "portable", "--optimizer", entry.optimizers.at(optimizer)};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    ASSERT_NO_FATAL_FAILURE(compile(entry.model(), flags));
    std::string wanted = train(entry.data(), "cpu");
    ASSERT_FALSE(wanted.empty());
    EXPECT_TRUE(train(entry.data(), "cuda") == wanted) << optimizer;
  }
}

class DeviceFadingTest : public DevicePortableTest {};

/// After a few steps on data, moments of weights that zeros have no gradient for shrink through the denormal numbers.
TEST_F(DeviceFadingTest, PortableHasTheBitsOfProcessors) {
  ZooEntry entry("mlp-digits");
  std::vector<std::string> flags{"--numerics", "portable", "--optimizer",
                                 "adamw:lr=0.02,beta1=0.5,beta2=0.6,epsilon=1e-6"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  ASSERT_NO_FATAL_FAILURE(compile(entry.model(), flags));
  std::vector<uint8_t> images(64 * 64 * sizeof(float)), labels(64 * sizeof(int64_t));
  std::string zeros = folder / "zeros.npz", after[2];
  ASSERT_TRUE(engine::writeNpz(zeros, {{"pixels", DataType::Float32, {64, 64}, images},
                                       {"label", DataType::Int64, {64}, labels}})
                  .isOk());
  for (int number : {0, 1}) {
    std::string device = number ? "cuda" : "cpu", file = folder / (device + ".safetensors");
    train(entry.data(), device);
    mustRun({"run", folder / "artifact", "--data", zeros, "--steps", "300", "--no-shuffle", "--quiet",
             "--device", device, "--load", file, "--save", file});
    after[number] = readFile(file);
  }
  EXPECT_TRUE(after[0] == after[1]);
}

INSTANTIATE_TEST_SUITE_P(Zoo, DevicePortableTest,
                         testing::Values("bert-tiny", "dlrm-tiny", "gpt2-tiny", "gru-forecast", "llama-tiny",
                                         "mlp-digits"),
                         [](const auto &info) { return caseName(info.param); });

/// What no model of the zoo is large enough for: a table whose gradient goes straight into its update, rows that a
/// block sums, products whose depth is cut.
class DeviceLargeTest : public DevicePortableTest {
protected:
  static constexpr int64_t kRows = 9000, kWidth = 16, kClasses = 2304, kBatch = 300, kWords = 20;

  DeviceLargeTest() {
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "words", proto::TensorProto::INT64, {kBatch, kWords});
    describe(graph->add_output(), "scores", proto::TensorProto::FLOAT, {kBatch, kClasses});
    addWeight(graph, "table", {kRows, kWidth}, 0.5f);
    addWeight(graph, "w", {kWidth, kClasses}, 0.2f);
    addWeight(graph, "scale", {kClasses}, 1);
    addWeight(graph, "bias", {kClasses}, 0.1f);
    addNode(graph, "Gather", {"table", "words"}, "rows");
    auto *mean = addNode(graph, "ReduceMean", {"rows"}, "mean");
    setInts(mean, "axes", 1), setInt(mean, "keepdims", 0);
    addNode(graph, "MatMul", {"mean", "w"}, "product");
    addNode(graph, "LayerNormalization", {"product", "scale", "bias"}, "scores");
    file = folder.write("model.onnx", model.SerializeAsString());

    std::vector<int64_t> words(kSteps * kBatch * kWords), labels(kSteps * kBatch);
    for (int64_t &word : words) // some words are frequent
      word = std::min<int64_t>(random() % kRows, random() % kRows);
    for (int64_t &label : labels)
      label = random() % kClasses;
    data = folder / "data.npz";
    EXPECT_TRUE(engine::writeNpz(data, {{"words", DataType::Int64, {kSteps * kBatch, kWords}, bytes(words)},
                                        {"label", DataType::Int64, {kSteps * kBatch}, bytes(labels)}})
                    .isOk());
  }

  static std::vector<uint8_t> bytes(const std::vector<int64_t> &values) {
    const auto *begin = reinterpret_cast<const uint8_t *>(values.data());
    return {begin, begin + values.size() * sizeof(int64_t)};
  }
  static proto::NodeProto *addNode(proto::GraphProto *graph, const char *type,
                                   const std::vector<std::string> &inputs, const std::string &output) {
    auto *node = graph->add_node();
    node->set_op_type(type);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }
  static proto::AttributeProto *addAttribute(proto::NodeProto *node, const char *name,
                                             proto::AttributeProto::AttributeType type) {
    auto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  }
  static void setInt(proto::NodeProto *node, const char *name, int64_t value) {
    addAttribute(node, name, proto::AttributeProto::INT)->set_i(value);
  }
  static void setInts(proto::NodeProto *node, const char *name, int64_t value) {
    addAttribute(node, name, proto::AttributeProto::INTS)->add_ints(value);
  }
  void addWeight(proto::GraphProto *graph, const std::string &name, const std::vector<int64_t> &dims,
                 float largest) {
    auto *weight = graph->add_initializer();
    weight->set_name(name);
    weight->set_data_type(proto::TensorProto::FLOAT);
    int64_t count = 1;
    for (int64_t dim : dims)
      weight->add_dims(dim), count *= dim;
    std::uniform_real_distribution<float> values(-largest, largest);
    for (int64_t i = 0; i < count; ++i)
      weight->add_float_data(values(random));
  }

  std::mt19937 random{5};
  std::string file, data;
};

TEST_F(DeviceLargeTest, PortableHasTheBitsOfProcessors) {
  for (const char *optimizer : {"sgd:lr=0.1,momentum=0.9", "adamw:lr=0.01"}) {
    ASSERT_NO_FATAL_FAILURE(
        compile(file, {"--loss", "cross_entropy", "--optimizer", optimizer, "--numerics", "portable"}));
    EXPECT_TRUE(train(data, "cuda") == train(data, "cpu")) << optimizer;
  }
}

/// SGD, whose steps are proportional to gradients: rounding stays rounding. Some 1e4 products and sums are behind a
/// value, each with 6e-8 at most, and their signs vary.
TEST_F(DeviceLargeTest, FastIsAsNearAsRounding) {
  ASSERT_NO_FATAL_FAILURE(compile(file, {"--loss", "cross_entropy", "--optimizer", "sgd:lr=0.1"}));
  train(data, "cpu"), train(data, "cuda");
  auto wanted = loadValues(folder / "cpu.safetensors"), found = loadValues(folder / "cuda.safetensors");
  for (const auto &[name, values] : wanted) {
    const Values &other = valuesOf(found, name);
    ASSERT_EQ(other.data.size(), values.data.size());
    double largest = 0, off = 0;
    for (size_t i = 0; i < values.data.size(); ++i) {
      largest = std::max(largest, std::fabs(values.data[i]));
      off = std::max(off, std::fabs(values.data[i] - other.data[i]));
    }
    EXPECT_LE(off, 2e-6 * largest) << name;
  }
}

/// A block has 48 KiB to share: as many products in float64 as fill a device with tiles of 64x64.
TEST_F(DeviceLargeTest, TilesOfDoublesFitIntoABlock) {
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  describe(graph->add_input(), "x", proto::TensorProto::FLOAT, {1024, 64});
  describe(graph->add_output(), "y", proto::TensorProto::FLOAT, {1024, 1024});
  addWeight(graph, "w", {64, 1024}, 1);
  addNode(graph, "MatMul", {"x", "w"}, "y");
  ASSERT_NO_FATAL_FAILURE(compile(folder.write("product.onnx", model.SerializeAsString()),
                                  {"--loss", "mse", "--optimizer", "sgd", "--precision", "f64"}));
  std::map<std::string, int> shared; // bytes, by kernel
  for (const Image &image : imagesOf(folder / "artifact/model.ortc")) {
    std::regex array("\\.shared \\.align \\d+ \\.b8 (\\w+)_shared_\\d+\\[(\\d+)\\]");
    for (std::sregex_iterator at(image.bytes.begin(), image.bytes.end(), array), end; at != end; ++at)
      shared[(*at)[1]] += std::stoi((*at)[2]);
  }
  ASSERT_FALSE(shared.empty());
  for (const auto &[kernel, bytes] : shared)
    EXPECT_LE(bytes, 48 << 10) << kernel;
}

} // namespace
