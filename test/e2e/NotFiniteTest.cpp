// A loss or weights that are not finite: what stops a run, what is not saved, and the reason, which is seldom the rate.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Words = std::vector<std::string>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// y = op(x w + c) beside labels of the same shape, whose mean squared error is trained: batches of 2 rows of 3.
class NotFiniteTest : public testing::Test {
protected:
  void compile(const std::string &op, const std::vector<float> &w, const std::vector<float> &c = {0, 0, 0},
               const Words &more = {"--optimizer", "sgd:lr=0.1"}) {
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "x", 1, {2, 3});
    describe(graph->add_output(), "y", 1, {2, 3});
    for (const auto &[name, values] : {std::pair("w", &w), {"c", &c}}) {
      auto *tensor = graph->add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(1);
      tensor->add_dims(3);
      for (float value : *values)
        tensor->add_float_data(value);
    }
    auto add = [&](const std::string &type, const Words &inputs, const std::string &output) {
      auto *node = graph->add_node();
      node->set_op_type(type);
      node->set_name(output);
      for (const std::string &input : inputs)
        node->add_input(input);
      node->add_output(output);
    };
    add("Mul", {"x", "w"}, "xw");
    add("Add", {"xw", "c"}, "xwc");
    add(op, {"xwc"}, "y");
    if (op == "BatchNormalization") {
      auto *norm = graph->mutable_node(2);
      for (const auto &[name, value] :
           {std::pair("scale", 1.0f), {"bias", 0}, {"mean", 0}, {"variance", 1}}) {
        norm->add_input(name);
        auto *tensor = graph->add_initializer();
        *tensor = graph->initializer(0);
        tensor->set_name(name);
        for (int i = 0; i < 3; ++i)
          tensor->set_float_data(i, value);
      }
      norm->add_output("new_mean");
      norm->add_output("new_variance");
      auto *mode = norm->add_attribute();
      mode->set_name("training_mode");
      mode->set_type(proto::AttributeProto::INT);
      mode->set_i(1);
    }
    Words words{"train",    folder.write("m.onnx", model.SerializeAsString()),
                "-o",       folder / "model",
                "--loss",   "mse",
                "--freeze", "c",
                "--target", "native",
                "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    mustRun(words);
  }
  /// Rows of x, two a step; labels are ones.
  std::string write(const std::vector<float> &x) {
    const auto rows = int64_t(x.size() / 3);
    EXPECT_TRUE(engine::writeNpz(
                    folder / "d.npz",
                    {{"x", DataType::Float32, {rows, 3}, bytesOfAll(x)},
                     {"label", DataType::Float32, {rows, 3}, bytesOfAll(std::vector<float>(x.size(), 1))}})
                    .isOk());
    return folder / "d.npz";
  }
  /// The one message of a run that fails, which must not leave `saved` changed.
  std::string fail(const std::vector<float> &x, const Words &more) {
    const std::string data = write(x), saved = folder / "saved.safetensors";
    const std::string before = std::filesystem::exists(saved) ? readFile(saved) : "";
    Words words{"run", folder / "model", "--data", data, "--no-shuffle", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    Outcome outcome = runTool(words);
    EXPECT_EQ(outcome.status, 1) << outcome.errors;
    EXPECT_EQ(std::filesystem::exists(saved) ? readFile(saved) : "", before);
    std::string text = outcome.errors;
    for (size_t at; (at = text.find(data)) != std::string::npos;)
      text.replace(at, data.size(), "DATA");
    for (size_t at; (at = text.find(saved)) != std::string::npos;)
      text.replace(at, saved.size(), "SAVED");
    return text;
  }

  const std::vector<float> fine = {1, 2, 3, 3, 2, 1}, zeros = std::vector<float>(6, 0);
  TemporaryFolder folder;
};

} // namespace

/// The loss of the step before is finite, and says nothing.
TEST_F(NotFiniteTest, AGradientThatIsNanStopsTheRunBeforeItIsSaved) {
  compile("Sqrt", {1, 2, 3});
  std::vector<float> x = fine;
  x.insert(x.end(), fine.begin(), fine.end());
  x.insert(x.end(), zeros.begin(), zeros.end());
  const std::string singular = "'w' has 3 nan among its 3 values; the loss, the data and the weights before "
                               "it were finite and had not grown: a "
                               "gradient has no value where the model is, as that of sqrt, log or a norm at "
                               "0; an epsilon keeps away from there";
  EXPECT_EQ(
      fail(x, {"--stop-on-nan", "--metrics", folder / "m.jsonl"}),
      "ortc: error: the weights are not finite after the update of step 3 (epoch 0, slice 2 of DATA): " +
          singular + "; nothing was saved; --save with --save-every N keeps what comes before\n");
  EXPECT_NE(readFile(folder / "m.jsonl").find("{\"event\":\"not_finite\",\"step\":3,\"tensor\":\"w\"}"),
            std::string::npos);
  // At the last step there is no loss that could tell.
  EXPECT_EQ(fail(x, {"--save", folder / "none"}),
            "ortc: error: " + (folder / "none") +
                ": step 3 is not saved: 'w' has 3 nan among its 3 values; --stop-on-nan ends at the step "
                "that does it, "
                "and says why; nothing was saved; --save with --save-every N keeps what comes before\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  // Files that are there stay: the checkpoint of another run, and that of two steps.
  mustRun(
      {"run", folder / "model", "--data", write(fine), "--quiet", "--save", folder / "saved.safetensors"});
  EXPECT_NE(
      fail(x, {"--save", folder / "saved.safetensors"}).find("SAVED: step 3 is not saved: 'w' has 3 nan"),
      std::string::npos);
  const std::string each = folder / "each.safetensors";
  EXPECT_NE(fail(x, {"--save", each, "--save-every", "1"}).find("; " + each + " holds step 2\n"),
            std::string::npos);
  for (const auto &[name, tensor] : loadValues(each))
    for (double value : tensor.data)
      EXPECT_TRUE(std::isfinite(value)) << name;
  EXPECT_NE(
      fail(x, {"--stop-on-nan", "--save", each, "--save-every", "2"}).find("; " + each + " holds step 2\n"),
      std::string::npos);
}

TEST_F(NotFiniteTest, DataAreNamedAndTheRateIsNot) {
  compile("Sigmoid", {1, 2, 3});
  std::vector<float> x = fine;
  x.insert(x.end(), {1, 2, 3, 4, kNan, 6});
  const std::string text = fail(x, {"--stop-on-nan"});
  EXPECT_NE(
      text.find(
          "the loss is not finite (step 2, epoch 0, slice 1 of DATA); the input 'x' is nan in the data: "
          "sample 3 of DATA, element 1 of its 'x', at byte "),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          ": leave such samples out, or repair them; no parameter was changed by this step, nothing was "
          "saved; --save with --save-every N keeps what comes before\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("--lr"), std::string::npos) << text;
}

TEST_F(NotFiniteTest, TheModelsOwnNumbersAreNamed) {
  compile("Sigmoid", {1, 2, 3}, {0, kNan, 0});
  std::string text = fail(fine, {"--stop-on-nan"});
  EXPECT_NE(text.find("; the constant '"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "' has 2 nan among its 6 values: the model's file has them; no parameter was changed by this step, "
          "nothing was saved\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("--lr"), std::string::npos) << text;
  compile("Sigmoid", {1, kNan, 3});
  text = fail(fine, {"--stop-on-nan"});
  EXPECT_NE(text.find("; 'w' has 1 nan among its 3 values since before the first step; no parameter"),
            std::string::npos)
      << text;
  Outcome warned = runTool({"run", folder / "model", "--data", write(fine)});
  EXPECT_NE(warned.errors.find("model.ortc: 'w' has 1 nan among its 3 values\n"), std::string::npos)
      << warned.errors;
}

TEST_F(NotFiniteTest, AFormulaWithoutAValueIsNamed) {
  compile("Log", {1, 2, 3});
  std::string text = fail(zeros, {"--stop-on-nan"});
  EXPECT_NE(text.find("; the data (up to 1) and the weights (up to 3) are finite and have not grown: the "
                      "model has no finite "
                      "value there, as log or a division at 0, or exp and products that are larger than "
                      "their type holds "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("--lr"), std::string::npos) << text;
  // Without the flag a run goes on, and says as much.
  Outcome warned = runTool({"run", folder / "model", "--data", write(zeros)});
  EXPECT_EQ(warned.status, 0) << warned.errors;
  EXPECT_NE(warned.errors.find(
                "warning: the loss is inf in step 1 (epoch 0); no step of this run had a finite one; the "
                "data (up to 1) and the weights (up to 3) are finite"),
            std::string::npos)
      << warned.errors;
}

/// A variance that no float holds leaves the loss as it is, as all is divided by it.
TEST_F(NotFiniteTest, ARunningStatisticThatIsInfiniteStopsTheRun) {
  compile("BatchNormalization", {1, 2, 3});
  const std::vector<float> rows = {1, 2, 3, 3, 2, 1, 1e30f, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1};
  const std::string text = fail(rows, {"--stop-on-nan", "--steps", "3"});
  EXPECT_NE(text.find("the weights are not finite after the update of step 2 (epoch 0, slice 1 of "),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          "'variance' has 1 inf among its 3 values; it is a statistic of the step's, and the data (up to "
          "1e+30) and the weights"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("--lr"), std::string::npos) << text;
}

TEST_F(NotFiniteTest, ASmallerRateIsAdvisedWhereNumbersGrew) {
  compile("Identity", {1, 2, 3});
  const std::vector<float> four = {1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1};
  std::string text = fail(four, {"--stop-on-nan", "--lr", "1e10", "--epochs", "9"});
  EXPECT_NE(text.find("; the numbers grew: the loss was "), std::string::npos) << text;
  EXPECT_NE(text.find(": try a smaller --lr; "), std::string::npos) << text;
  text = fail(four, {"--stop-on-nan", "--lr", "1e38"});
  EXPECT_NE(text.find("try a smaller --lr; "), std::string::npos) << text;
  Outcome warned = runTool({"run", folder / "model", "--data", write(four), "--lr", "1e10", "--epochs", "9"});
  EXPECT_NE(warned.errors.find("; the numbers grew: the loss was "), std::string::npos) << warned.errors;
}
