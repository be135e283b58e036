// Losses with weights of classes and samples, sums, and sequences: what `ortc eval` makes of slices that are not full,
// what steps refuse.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "support/Npy.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class LossesTest : public testing::Test {
protected:
  std::string writeFactors(const std::string &name, const std::vector<double> &values) {
    std::string header = formatNpyHeader(DataType::Float64, {int64_t(values.size())});
    std::vector<uint8_t> bytes = bytesOfAll(values);
    return folder.write(name, header + std::string(bytes.begin(), bytes.end()));
  }
  /// 50 samples of mlp-digits with weights; labels are class indices, some of them ignored, or values.
  std::string writeDigits(bool areValues = false) {
    auto arrays = loadValues(digits.data());
    std::vector<float> x, weight, values;
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < 50; ++i) {
      for (int64_t k = 0; k < 64; ++k)
        x.push_back(float(arrays["pixels"].data[size_t(i * 64 + k)]));
      indices.push_back(i % 7 == 3 ? -100 : int64_t(arrays["label"].data[size_t(i)]));
      weight.push_back(float(i % 4) * 0.5f);
      for (int64_t k = 0; k < 10; ++k)
        values.push_back(float((i + k) % 6) * 0.2f);
    }
    std::string path = folder / "digits.npz";
    engine::OutputArray label = {"label", DataType::Int64, {50}, bytesOfAll(indices)};
    if (areValues)
      label = {"label", DataType::Float32, {50, 10}, bytesOfAll(values)};
    EXPECT_TRUE(engine::writeNpz(path, {{"pixels", DataType::Float32, {50, 64}, bytesOfAll(x)},
                                        label,
                                        {"sample_weight", DataType::Float32, {50}, bytesOfAll(weight)}})
                    .isOk());
    return path;
  }
  Outcome compile(const std::string &model, const std::string &loss, const std::string &batch) {
    return runTool({"train", model, "--shape", "batch=" + batch, "--loss", loss, "--precision", "f64",
                    "--target", "native", "--quiet", "-o", folder / "a"});
  }
  double evaluate(const std::string &loss, const std::string &batch, const std::string &data) {
    Outcome compiled = compile(digits.model(), loss, batch);
    EXPECT_EQ(compiled.status, 0) << compiled.errors;
    Outcome outcome = mustRun({"eval", folder / "a", "--data", data, "--json"});
    EXPECT_EQ(outcome.errors.find("of which only"), std::string::npos) << outcome.errors;
    return nlohmann::json::parse(outcome.text)["loss"].get<double>();
  }

  TemporaryFolder folder;
  ZooEntry digits{"mlp-digits"};
};

TEST_F(LossesTest, SlicesGiveTheLossOfAllSamples) {
  std::string data = writeDigits();
  std::string factors = writeFactors("w.npy", {0.5, 2, 1, 1, 3, 0, 1, 1, 0.25, 1});
  double plain = evaluate("cross_entropy", "50", data);
  for (const char *keys :
       {"reduction=sum", "sample_weight=1", "sample_weight=1,reduction=sum", "class_weight=@",
        "class_weight=@,sample_weight=1", "class_weight=@,reduction=sum"}) {
    std::string loss = std::string("cross_entropy:") + keys;
    if (size_t at = loss.find('@'); at != std::string::npos)
      loss.replace(at, 1, factors);
    double whole = evaluate(loss, "50", data), cut = evaluate(loss, "16", data); // 3 slices and 2 samples
    EXPECT_NEAR(cut, whole, 1e-6 * std::fabs(whole)) << keys;
    EXPECT_GT(std::fabs(whole - plain), 1e-4 * plain) << keys << " changes nothing";
  }
}

TEST_F(LossesTest, SlicesGiveTheLossOfAllSamplesOfValues) {
  std::string data = writeDigits(/*areValues=*/true);
  for (const char *loss :
       {"mse", "mse:reduction=sum", "mse:sample_weight=1", "l1:sample_weight=1,reduction=sum", "kl_div",
        "dice:reduction=sum", "multilabel_soft_margin", "focal:gamma=1.5"}) {
    double whole = evaluate(loss, "50", data), cut = evaluate(loss, "16", data);
    EXPECT_NEAR(cut, whole, 1e-6 * std::fabs(whole)) << loss;
  }
  // Terms that depend on other samples cannot be taken out, and a note says so.
  ASSERT_EQ(compile(digits.model(), "info_nce", "16").status, 0);
  Outcome outcome = mustRun({"eval", folder / "a", "--data", data});
  EXPECT_NE(outcome.errors.find("of which only 2 are different"), std::string::npos) << outcome.errors;
}

/// The same weights, data and decisions, so the same metrics.
TEST_F(LossesTest, MetricsAreOfLogitsWhateverTheLoss) {
  std::string data = writeDigits(/*areValues=*/true);
  auto measure = [&](const std::string &loss) {
    EXPECT_EQ(compile(digits.model(), loss, "50").status, 0);
    auto json = nlohmann::json::parse(
        mustRun({"eval", folder / "a", "--data", data, "--json", "--metric", "auc", "--metric", "accuracy"})
            .text);
    return std::pair(json["auc"].get<double>(), json["accuracy"].get<double>());
  };
  auto wanted = measure("bce_with_logits");
  EXPECT_GT(wanted.second, 0);
  for (const char *loss : {"focal", "dice", "hinge", "soft_margin", "multilabel_soft_margin"})
    EXPECT_EQ(measure(loss), wanted) << loss;
}

TEST_F(LossesTest, FactorsThatDoNotFitAreRefused) {
  auto refuse = [&](const std::string &loss) {
    Outcome outcome = compile(digits.model(), loss, "4");
    EXPECT_EQ(outcome.status, 2) << loss << "\n" << outcome.errors;
    return outcome.errors;
  };
  auto expect = [&](const std::string &loss, const std::string &text) {
    std::string errors = refuse(loss);
    EXPECT_NE(errors.find(text), std::string::npos) << errors;
  };
  std::string few = writeFactors("few.npy", {1, 2}),
              bad = writeFactors("bad.npy", {1, 1, -2, 1, 1, 1, 1, 1, 1, 1});
  std::string endless = writeFactors("endless.npy", {1, 1, 1, HUGE_VAL, 1, 1, 1, 1, 1, 1});
  expect("cross_entropy:class_weight=" + few, "model.onnx: --loss cross_entropy:class_weight=" + few + ": " +
                                                  few + " has shape [2] but there are 10 classes");
  expect("nll:class_weight=" + bad, bad + " has -2 at index 2 but factors must be finite and not negative");
  expect("cross_entropy:class_weight=" + endless,
         endless + " has inf at index 3 but factors must be finite and not negative");
  expect("bce_with_logits:pos_weight=" + few,
         few + " has shape [2], which does not broadcast to the logits' [4, 10]");
  expect("bce_with_logits:pos_weight=" + bad, bad + " has -2 at index 2");
  expect("cross_entropy:class_weight=" + (folder / "none.npy"),
         "model.onnx: --loss cross_entropy:class_weight=" + (folder / "none.npy") + ": " +
             (folder / "none.npy") + ": cannot be opened: No such file or directory");
}

/// A graph whose output is log_softmax(x + bias), [frames, samples, classes].
std::string writeSpeech(TemporaryFolder &folder) {
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  auto *bias = graph->add_initializer();
  bias->set_name("b");
  bias->set_data_type(proto::TensorProto::FLOAT);
  bias->add_dims(4);
  for (float value : {0.5f, -0.25f, 0.0f, 1.0f})
    bias->add_float_data(value);
  for (const char *name : {"x", "y"}) {
    auto *value = name[0] == 'x' ? graph->add_input() : graph->add_output();
    value->set_name(name);
    auto *tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(proto::TensorProto::FLOAT);
    for (int64_t size : {6, 2, 4})
      tensor->mutable_shape()->add_dim()->set_dim_value(size);
  }
  auto *sum = graph->add_node();
  sum->set_op_type("Add");
  sum->add_input("x");
  sum->add_input("b");
  sum->add_output("s");
  auto *last = graph->add_node();
  last->set_op_type("LogSoftmax");
  last->add_input("s");
  last->add_output("y");
  auto *axis = last->add_attribute();
  axis->set_name("axis");
  axis->set_type(proto::AttributeProto::INT);
  axis->set_i(-1);
  return folder.write("speech.onnx", model.SerializeAsString());
}

class SequenceTest : public LossesTest {
protected:
  Outcome train(const std::vector<int64_t> &label, const std::vector<int64_t> &frames,
                const std::vector<int64_t> &lengths) {
    std::vector<float> x(6 * 2 * 4);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i * 7 % 11) / 4 - 1;
    EXPECT_TRUE(
        engine::writeNpz(folder / "d.npz", {{"x", DataType::Float32, {6, 2, 4}, bytesOfAll(x)},
                                            {"label", DataType::Int64, {2, 3}, bytesOfAll(label)},
                                            {"input_lengths", DataType::Int64, {2}, bytesOfAll(frames)},
                                            {"target_lengths", DataType::Int64, {2}, bytesOfAll(lengths)}})
            .isOk());
    return runTool({"run", folder / "a", "--data", folder / "d.npz", "--steps", "3", "--save", folder / "ck",
                    "--metrics", folder / "m.jsonl"});
  }
};

/// Losses of three steps of torch.nn.CTCLoss and torch.optim.SGD(lr=0.5) in float64 (test/e2e/make-ctc.py).
TEST_F(SequenceTest, TrainsAsPyTorchDoes) {
  mustRun({"train", writeSpeech(folder), "--loss", "ctc:labels=3", "--optimizer", "sgd:lr=0.5", "--precision",
           "f64", "--target", "native", "--quiet", "-o", folder / "a"});
  Outcome outcome = train({1, 1, 2, 3, 0, -1}, {6, 4}, {3, 1});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::vector<double> losses = loadLosses(folder / "m.jsonl"),
                      expected = {1.7677356297924636, 1.6442145781130924, 1.5423959165660843};
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-9) << i;
}

TEST_F(SequenceTest, BadLabelsEndTheStepBeforeTheUpdate) {
  const std::string model = writeSpeech(folder), data = folder / "d.npz";
  auto build = [&](const std::string &loss) {
    mustRun({"train", model, "--loss", loss, "--target", "native", "--quiet", "-o", folder / "a"});
  };
  struct Case {
    std::vector<int64_t> label, frames, lengths;
    std::string message;
  };
  auto check = [&](const Case &each) {
    Outcome outcome = train(each.label, each.frames, each.lengths);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.errors.find(each.message), std::string::npos) << outcome.errors;
    EXPECT_TRUE(readFile(folder / "ck").empty()) << "nothing was trained";
  };
  const std::string from = "; it is from slice 0 of " + data + ", element ";
  build("ctc:labels=3");
  for (const Case &each :
       {Case{{1, 0, 2, 3, 0, 1},
             {6, 4},
             {3, 1},
             from + "1 of its 'label', at byte "}, // the padding is the blank, too
        {{1, 1, 2, 3, 0, 0}, {6, 4}, {3, 2}, from + "4 of its 'label'"},
        {{1, 1, 2, 3, 0, 0}, {6, 4}, {3, 2}, ", label 1 of sample 1 of the slice; 0 is the blank"},
        {{1, 0, 2, 3, 1, 1},
         {6, 4},
         {3, 1},
         "; 0 is the blank of the loss ctc, which no label is: leave it out"},
        {{1, 4, 2, 3, 1, 1}, {6, 4}, {3, 1}, "; labels are classes but 0, the blank of the loss ctc"},
        {{1, 1, 2, 3, 1, 1}, {7, 4}, {3, 1}, "index 7 in 'input_lengths' is out of range [0, 7)"},
        {{1, 1, 2, 3, 1, 1}, {6, 4}, {4, 1}, "index 4 in 'target_lengths' is out of range [0, 4)"},
        {{1, 1, 2, 3, 1, 1}, {6, -1}, {3, 1}, "input_lengths"}})
    check(each);
  build("ctc:labels=3,blank=2"); // classes are two ranges
  check({{1, 1, 2, 3, 0, 1}, {6, 4}, {3, 1}, "; 2 is the blank of the loss ctc, which no label is"});
  build("ctc:labels=4");
  check({{1, 1, 2, 3, 1, 1},
         {6, 4},
         {3, 1},
         "array 'label' has shape [2, 3] but input 'label' is [2, 4]: all dimensions after the first must be "
         "equal; a "
         "sample has 4 labels with padding: compile with --loss ctc:labels=3, or cut or pad the array"});
  Outcome outcome = runTool(
      {"train", model, "--loss", "ctc:labels=7,target_lengths=0", "--target", "native", "-o", folder / "b"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("every sample has more labels than frames"), std::string::npos)
      << outcome.errors;
}

/// Without an alignment the loss is infinite, as PyTorch's is: the warning says which sample has none.
TEST_F(SequenceTest, LabelsLongerThanTheirFramesAreNamed) {
  mustRun({"train", writeSpeech(folder), "--loss", "ctc:labels=3", "--target", "native", "--quiet", "-o",
           folder / "a"});
  auto expect = [&](const std::vector<int64_t> &frames, const std::string &message) {
    Outcome outcome = train({3, 1, 2, 1, 1, 2}, frames, {2, 3});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors.find("warning") == std::string::npos, message.empty()) << outcome.errors;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
  };
  expect({2, 4}, ""); // just enough
  const std::string of = " of its 'input_lengths', at byte ";
  expect({1, 4}, "element 0" + of);
  expect({1, 4},
         "is 1 frame, and its 2 labels need 2: leave such samples out, or compile with ctc:zero_infinity=1");
  expect({2, 3}, "element 1" + of);
  expect({2, 3}, "is 3 frames, and its 3 labels, equal neighbours among them, need 4: leave");
}

} // namespace
