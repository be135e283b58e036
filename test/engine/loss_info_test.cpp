// What the host makes of labels and outputs by what the manifest says of the loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>

#include "engine/artifact/loss_info.h"
#include "support/Text.h"

using namespace ortc;
using namespace ortc::engine;

template <typename T>
static TensorView view(DataType type, const Shape &shape, const std::vector<T> &values) {
  return {type, shape, reinterpret_cast<const uint8_t *>(values.data())};
}

static LossInfo parse(const std::string &json) {
  std::vector<LossInfo> losses;
  Status status = parseLosses(json, "a", losses);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  EXPECT_EQ(losses.size(), 1u);
  return losses.empty() ? LossInfo() : losses.front();
}

TEST(LossInfoTest, ReadsTheManifest) {
  LossInfo loss =
      parse(R"({"loss": {"kind": "cross_entropy", "output": "y", "axis": 2, "ignore_index": 0}, "x": 1})");
  EXPECT_TRUE(loss.hasClasses);
  EXPECT_FALSE(loss.isNone || loss.isInGraph);
  EXPECT_EQ(loss.output, "y");
  EXPECT_EQ(loss.axis, 2);
  EXPECT_TRUE(loss.hasIgnored);
  EXPECT_EQ(loss.ignoreIndex, 0);
  EXPECT_FALSE(parse(R"({"loss": {"kind": "made_up_later", "label": "values"}})").hasClasses);
  EXPECT_FALSE(parse(R"({"loss": {"kind": "cross_entropy", "axis": 1e300}})").hasClasses);
  EXPECT_FALSE(parse(R"({"loss": {"kind": "cross_entropy", "axis": 1, "ignore_index": -1e19}})").hasIgnored);
  EXPECT_TRUE(parse(R"({"loss": {"kind": "output"}})").isInGraph);
  EXPECT_TRUE(parse(R"({"loss": {"kind": "none"}})").isNone);
}

TEST(LossInfoTest, RefusesAManifestWithoutALoss) {
  std::vector<LossInfo> loss;
  EXPECT_EQ(parseLosses("[]", "a", loss).getMessage(),
            "a: the manifest is no JSON object; compile the artifact again");
  EXPECT_EQ(parseLosses("{}", "a", loss).getMessage(),
            "a: the manifest does not say which loss the artifact has; compile it again");
  const std::string deep = std::string(300000, '[') + std::string(300000, ']');
  EXPECT_EQ(parseLosses(R"({"loss": {"kind": "none"}, "bindings": )" + deep + "}", "a", loss).getMessage(),
            "a: the manifest is no JSON object; compile the artifact again");
}

TEST(LossInfoTest, ReadsSeveralLosses) {
  std::vector<LossInfo> losses;
  ASSERT_TRUE(parseLosses(R"({"loss": {"kind": "sum", "parts": [
      {"kind": "mse", "output": "box", "name": "b", "value": "loss.b", "input": "label.b", "weight": "loss.b.weight"},
      {"kind": "cross_entropy", "output": "class", "axis": 1, "name": "c", "value": "loss.c", "input": "label.c",
       "inputs": ["sample_weight.c"]}]}})",
                          "a", losses)
                  .isOk());
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].output, "box");
  EXPECT_EQ(losses[0].label, "label.b");
  EXPECT_EQ(losses[0].value, "loss.b");
  EXPECT_EQ(losses[0].weight, "loss.b.weight");
  EXPECT_FALSE(losses[0].hasClasses);
  EXPECT_EQ(losses[1].name, "c");
  EXPECT_TRUE(losses[1].hasClasses);
  EXPECT_EQ(losses[0].findSampleWeight(), "");
  EXPECT_EQ(losses[1].findSampleWeight(), "sample_weight.c");
  EXPECT_TRUE(losses[1].reads("label.c") && losses[1].reads("sample_weight.c"));
  EXPECT_FALSE(losses[1].reads("label") || losses[1].reads("label.b"));
  EXPECT_FALSE(parseLosses(R"({"loss": {"kind": "sum", "parts": []}})", "a", losses).isOk());
  EXPECT_FALSE(
      parseLosses(R"({"loss": {"kind": "sum", "parts": [{"kind": "mse"}, {}]}})", "a", losses).isOk());
}

TEST(LossInfoTest, MasksAndCountsLabels) {
  LossInfo loss = parse(R"({"loss": {"kind": "cross_entropy", "axis": 1, "ignore_index": -100}})");
  std::vector<int32_t> labels = {1, -100, 2, 0};
  TensorView label = view(DataType::Int32, {2, 2}, labels);
  ASSERT_TRUE(canIgnoreLabels(loss, label));
  EXPECT_EQ(countLabels(loss, label, {}, 2), 3);
  EXPECT_EQ(countLabels(loss, label, {}, 1), 1);
  ignoreLabels(loss, label, 1, reinterpret_cast<uint8_t *>(labels.data()));
  EXPECT_EQ(labels, (std::vector<int32_t>{1, -100, -100, -100}));
}

TEST(LossInfoTest, CountsWhatLabelsAndSamplesWeigh) {
  LossInfo loss =
      parse(R"({"loss": {"kind": "cross_entropy", "axis": 1, "ignore_index": -100, "reduction": "sum",
                                     "class_weight": [0.5, 2, 4], "inputs": ["sample_weight"]}})");
  EXPECT_TRUE(loss.isSum);
  EXPECT_TRUE(loss.reads("label"));
  EXPECT_TRUE(loss.reads("sample_weight"));
  EXPECT_EQ(loss.findSampleWeight(), "sample_weight");
  EXPECT_FALSE(loss.reads("x"));
  std::vector<int32_t> labels = {1, -100, 2, 0};
  std::vector<float> weights = {0.5, 3};
  TensorView label = view(DataType::Int32, {2, 2}, labels), weight = view(DataType::Float32, {2}, weights);
  EXPECT_EQ(countLabels(loss, label, {}, 2), 6.5);
  EXPECT_EQ(countLabels(loss, label, weight, 2), 0.5 * 2 + 3 * 4.5);
  LossInfo values = parse(R"({"loss": {"kind": "mse", "inputs": ["sample_weight"]}})");
  EXPECT_FALSE(values.isSum);
  EXPECT_EQ(countLabels(values, label, weight, 2), 3.5);
  EXPECT_EQ(countLabels(values, label, {}, 2), 2);
}

TEST(TextTest, NotANumberHasNoSign) {
  EXPECT_EQ(formatShort(NAN), "nan");
  EXPECT_EQ(formatShort(-NAN), "nan");
  EXPECT_EQ(formatNumber(-NAN), "nan");
}

TEST(LossInfoTest, AnEmptyMeanStaysOut) {
  WeightedSum sum;
  sum.add(NAN, 0);
  sum.add(2, 3);
  sum.add(6, 1);
  EXPECT_EQ(sum.mean(), 3);
}
