// A backbone of integers under a tail of floats that is trained: its numbers against integer arithmetic of this test,
// its weights stay integers in the artifact, and only the tail moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "support/Random.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

constexpr int kBatch = 4, kIn = 4, kSize = 8, kOut = 32, kClasses = 5;
constexpr float kInScale = 0.03f, kOutScale = 0.15f;
constexpr int kInZero = 121, kOutZero = 3;

class BackboneTest : public testing::Test {
protected:
  BackboneTest() {
    Random random(11);
    auto next = [&](int low, int high) { return low + int(random.next() % uint64_t(high - low + 1)); };
    for (int i = 0; i < kOut * kIn * 9; ++i) // smaller than what becomes part of the code in other types
      filter.push_back(int8_t(next(-127, 127)));
    for (int k = 0; k < kOut; ++k) {
      scales.push_back(0.001f * float(next(1, 9)));
      bias.push_back(next(-3000, 3000));
    }
    for (int i = 0; i < kBatch * kIn * kSize * kSize; ++i)
      x.push_back(float(next(-4000, 4000)) / 1000);
    for (int i = 0; i < kClasses * kOut; ++i)
      head.push_back(float(next(-100, 100)) / 500);
    for (int i = 0; i < kBatch; ++i)
      label.push_back(next(0, kClasses - 1));
  }

  template <typename T>
  void initializer(const char *name, int type, const std::vector<int64_t> &dims,
                   const std::vector<T> &values) {
    auto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t dim : dims)
      tensor->add_dims(dim);
    tensor->set_raw_data(engine::test::bytesOf(values));
  }
  proto::NodeProto *node(const char *op, const std::vector<std::string> &inputs, const char *output) {
    auto *added = model.mutable_graph()->add_node();
    added->set_op_type(op);
    for (const std::string &input : inputs)
      added->add_input(input);
    added->add_output(output);
    return added;
  }
  static void setInts(proto::NodeProto *of, const char *name, std::vector<int64_t> values) {
    auto *attribute = of->add_attribute();
    attribute->set_name(name);
    attribute->set_type(proto::AttributeProto::INTS);
    for (int64_t value : values)
      attribute->add_ints(value);
  }
  static void setInt(proto::NodeProto *of, const char *name, int64_t value) {
    auto *attribute = of->add_attribute();
    attribute->set_name(name);
    attribute->set_type(proto::AttributeProto::INT);
    attribute->set_i(value);
  }

  /// As QLinearConv, or as a Conv of floats whose weights go through DequantizeLinear.
  std::string build(bool isInteger) {
    model = proto::ModelProto();
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("backbone");
    initializer<int8_t>("filter", 3, {kOut, kIn, 3, 3}, filter);
    initializer<float>("filter_scale", 1, {kOut}, scales);
    initializer<int8_t>("filter_zero", 3, {kOut}, std::vector<int8_t>(kOut));
    initializer<float>("head.weight", 1, {kClasses, kOut}, head);
    initializer<float>("head.bias", 1, {kClasses}, std::vector<float>(kClasses));
    if (isInteger) {
      initializer<float>("in_scale", 1, {}, {kInScale});
      initializer<uint8_t>("in_zero", 2, {}, {kInZero});
      initializer<float>("out_scale", 1, {}, {kOutScale});
      initializer<uint8_t>("out_zero", 2, {}, {kOutZero});
      initializer<int32_t>("filter_bias", 6, {kOut}, bias);
      node("QuantizeLinear", {"x", "in_scale", "in_zero"}, "xq");
      setInts(node("QLinearConv",
                   {"xq", "in_scale", "in_zero", "filter", "filter_scale", "filter_zero", "out_scale",
                    "out_zero", "filter_bias"},
                   "yq"),
              "pads", {1, 1, 1, 1});
      node("DequantizeLinear", {"yq", "out_scale", "out_zero"}, "features");
    } else {
      setInt(node("DequantizeLinear", {"filter", "filter_scale", "filter_zero"}, "weights"), "axis", 0);
      setInts(node("Conv", {"x", "weights"}, "features"), "pads", {1, 1, 1, 1});
    }
    node("GlobalAveragePool", {"features"}, "pooled");
    node("Flatten", {"pooled"}, "flat");
    setInt(node("Gemm", {"flat", "head.weight", "head.bias"}, "y"), "transB", 1);
    describe(graph->add_input(), "x", 1, {kBatch, kIn, kSize, kSize});
    describe(graph->add_output(), "y", 1, {kBatch, kClasses});
    return folder.write("model.onnx", model.SerializeAsString());
  }

  /// The mean of channel k of sample n behind the convolution.
  double pooled(int n, int k, bool isInteger) const {
    double sum = 0;
    for (int row = 0; row < kSize; ++row)
      for (int column = 0; column < kSize; ++column) {
        int64_t integers = isInteger ? bias[k] : 0;
        double floats = 0;
        for (int c = 0; c < kIn; ++c)
          for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) {
              int i = row + r - 1, j = column + s - 1;
              if (i < 0 || j < 0 || i >= kSize || j >= kSize)
                continue;
              float value = x[((n * kIn + c) * kSize + i) * kSize + j];
              int weight = filter[((k * kIn + c) * 3 + r) * 3 + s];
              long number = std::lrint(std::nearbyint(value / kInScale)) + kInZero;
              integers += (std::clamp(number, 0l, 255l) - kInZero) * weight;
              floats += double(value) * weight * scales[k];
            }
        float factor = kInScale * scales[k] / kOutScale;
        double rounded = std::nearbyint(float(integers) * factor) + kOutZero;
        sum += isInteger ? (std::clamp(rounded, 0.0, 255.0) - kOutZero) * kOutScale : floats;
      }
    return sum / (kSize * kSize);
  }

  void expectTrained(bool isInteger) {
    std::string path = build(isInteger);
    mustRun({"train", path, "-o", folder / "model", "--train", "head.*", "--optimizer", "adam:lr=0.05",
             "--target", "native", "--quiet"});
    auto bytes = [](const auto &values) {
      const auto *first = reinterpret_cast<const uint8_t *>(values.data());
      return std::vector<uint8_t>(first, first + values.size() * sizeof values[0]);
    };
    ASSERT_TRUE(engine::writeNpz(folder / "data.npz",
                                 {{"x", DataType::Float32, {kBatch, kIn, kSize, kSize}, bytes(x)},
                                  {"label", DataType::Int64, {kBatch}, bytes(label)}})
                    .isOk());
    mustRun({"predict", folder / "model", "--data", folder / "data.npz", "-o", folder / "y.npz", "--quiet"});
    auto arrays = loadValues(folder / "y.npz");
    for (int n = 0; n < kBatch; ++n) {
      double expected[kClasses] = {};
      for (int k = 0; k < kOut; ++k) {
        double feature = pooled(n, k, isInteger);
        for (int i = 0; i < kClasses; ++i)
          expected[i] += feature * head[i * kOut + k];
      }
      for (int i = 0; i < kClasses; ++i) // float32 sums of 32 terms of about 1
        ASSERT_NEAR(valuesOf(arrays, "y").data[n * kClasses + i], expected[i], 1e-5) << n << " " << i;
    }
    // The filter is stored as it was, and nothing else of its size is.
    auto manifest = nlohmann::json::parse(readFile(folder / "model/manifest.json"));
    EXPECT_LT(manifest["memory"]["constants"].get<int>(), kOut * kIn * 9 + 1024);
    EXPECT_NE(mustRun({"inspect", folder / "model"}).text.find("constant   filter "), std::string::npos);
    mustRun({"run", folder / "model", "--data", folder / "data.npz", "--steps", "8", "--save", folder / "ck",
             "--metrics", folder / "metrics.jsonl", "--quiet"});
    std::vector<double> losses = loadLosses(folder / "metrics.jsonl");
    ASSERT_EQ(losses.size(), 8u);
    EXPECT_LT(losses.back(), 0.8 * losses.front());
    auto saved = loadValues(folder / "ck");
    EXPECT_TRUE(saved.count("head.weight"));
    EXPECT_FALSE(saved.count("filter"));
  }

  TemporaryFolder folder;
  proto::ModelProto model;
  std::vector<int8_t> filter;
  std::vector<float> scales, x, head;
  std::vector<int32_t> bias;
  std::vector<int64_t> label;
};

TEST_F(BackboneTest, OfQLinearConv) { expectTrained(true); }
TEST_F(BackboneTest, OfDequantizedWeights) { expectTrained(false); }

/// What is in memory behind a quantised layer are 32-bit numbers, and no copy in another layout.
TEST_F(BackboneTest, BiasesMakeNoProductWide) {
  mustRun({"train", build(true), "-o", folder / "model", "--train", "head.*", "--target", "native", "--quiet",
           "--dump-ir", folder / "ir"});
  std::string ir = readFile(folder / "ir/2-simplify.mlir");
  EXPECT_NE(ir.find("nn.conv "), std::string::npos);
  for (size_t at = ir.find("nn.conv "); at != std::string::npos; at = ir.find("nn.conv ", at + 1))
    EXPECT_EQ(ir.substr(at, ir.find('\n', at) - at).find("f64"), std::string::npos);
}

} // namespace
