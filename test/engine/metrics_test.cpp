// Metrics against the numbers of scikit-learn and torchmetrics (metrics/make_references.py), and what they refuse.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/metrics/metric_set.h"
#include "support/Text.h"

using namespace ortc;
using namespace ortc::engine;

namespace {

/// A case of references.txt.
struct Case {
  std::string name;
  LossInfo loss;
  Shape shape; ///< of the output
  std::vector<float> output, label;
  std::vector<float> inputLengths, targetLengths; ///< of sequences, where they have such
  std::map<std::string, double> metrics;
};

std::vector<float> readNumbers(std::istringstream &words) {
  std::vector<float> numbers;
  for (std::string word; words >> word;)
    numbers.push_back(std::strtof(word.c_str(), nullptr));
  return numbers;
}

std::vector<Case> readCases() {
  std::ifstream file(ORTC_TEST_DATA "/engine/metrics/references.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "case") {
      Case &one = cases.emplace_back();
      std::string shape;
      words >> one.name >> one.loss.kind >> shape;
      std::istringstream dimensions(shape);
      for (std::string text; std::getline(dimensions, text, 'x');)
        one.shape.push_back(std::stoll(text));
      one.loss.hasClasses = one.loss.hasIgnored = one.loss.kind == "cross_entropy";
      if (!one.loss.hasClasses && one.loss.kind != "ctc")
        one.loss.compares = one.loss.kind == "bce_with_logits" ? "decisions" : "values";
    } else if (key == "ignore") {
      words >> cases.back().loss.ignoreIndex;
    } else if (key == "blank") {
      words >> cases.back().loss.blank;
    } else if (key == "input_lengths" || key == "target_lengths") {
      (key[0] == 'i' ? cases.back().inputLengths : cases.back().targetLengths) = readNumbers(words);
      cases.back().loss.inputs.push_back(key);
    } else if (key == "output") {
      cases.back().output = readNumbers(words);
    } else if (key == "label") {
      cases.back().label = readNumbers(words);
    } else if (key == "metric") {
      std::string spec, value;
      words >> spec >> value;
      cases.back().metrics[spec] = std::strtod(value.c_str(), nullptr);
    }
  }
  return cases;
}

template <typename T> TensorView view(DataType type, const Shape &shape, const T *data) {
  return {type, shape, reinterpret_cast<const uint8_t *>(data)};
}

/// With one output, which feeds the loss, and a label.
Status begin(MetricSet &set, const LossInfo &loss, TensorShape output, TensorShape label) {
  output.name = loss.output;
  label.name = "label";
  return set.begin({loss}, {output}, {label});
}
Status addSlice(MetricSet &set, const TensorView &output, const TensorView &label, int64_t rows) {
  return set.addSlice([&](const std::string &name) { return name == "label" ? label : output; }, rows,
                      output.shape[0]);
}

/// Sequences have their samples in the middle: slices of `batch`, of which the last is filled with the first sample.
std::map<std::string, double> computeSequences(const Case &one, int64_t batch) {
  MetricSet set;
  EXPECT_TRUE(set.add("label_error_rate").isOk());
  const auto samples = size_t(one.shape[1]), classes = size_t(one.shape[2]),
             labels = one.label.size() / samples;
  const Shape shape = {one.shape[0], batch, one.shape[2]}, labelShape = {batch, int64_t(labels)};
  std::vector<TensorShape> inputs = {{"label", DataType::Int64, labelShape}};
  Status status = set.begin({one.loss}, {{one.loss.output, DataType::Float32, shape}}, inputs);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  for (size_t first = 0; first < samples; first += size_t(batch)) {
    std::vector<float> output;
    std::vector<int64_t> label, frames, counts;
    auto sampleOf = [&](size_t i) { return first + i < samples ? first + i : 0; };
    for (int64_t t = 0; t < one.shape[0]; ++t)
      for (size_t i = 0; i < size_t(batch); ++i) {
        auto from = one.output.begin() + long((size_t(t) * samples + sampleOf(i)) * classes);
        output.insert(output.end(), from, from + long(classes));
      }
    for (size_t i = 0; i < size_t(batch); ++i) {
      for (size_t k = 0; k < labels; ++k)
        label.push_back(int64_t(one.label[sampleOf(i) * labels + k]));
      if (!one.inputLengths.empty()) {
        frames.push_back(int64_t(one.inputLengths[sampleOf(i)]));
        counts.push_back(int64_t(one.targetLengths[sampleOf(i)]));
      }
    }
    auto find = [&](const std::string &name) {
      return name == "label"            ? view(DataType::Int64, labelShape, label.data())
             : name == "input_lengths"  ? view(DataType::Int64, {batch}, frames.data())
             : name == "target_lengths" ? view(DataType::Int64, {batch}, counts.data())
                                        : view(DataType::Float32, shape, output.data());
    };
    EXPECT_TRUE(set.addSlice(find, int64_t(std::min(size_t(batch), samples - first)), batch).isOk());
  }
  return {{"label_error_rate", set.compute()[0].second}};
}

/// Slices of `batch` rows; the last one is filled with numbers that change every metric.
std::map<std::string, double> compute(const Case &one, int64_t batch) {
  if (one.loss.kind == "ctc")
    return computeSequences(one, batch);
  MetricSet set;
  for (const auto &[spec, value] : one.metrics)
    EXPECT_TRUE(set.add(spec).isOk()) << spec;
  Shape shape = one.shape, labelShape = one.shape;
  shape[0] = labelShape[0] = batch;
  if (one.loss.hasClasses)
    labelShape.erase(labelShape.begin() + 1);
  size_t rows = size_t(one.shape[0]), row = one.output.size() / rows, labelRow = one.label.size() / rows;
  DataType labelType = one.loss.hasClasses ? DataType::Int64 : DataType::Float32;
  Status status = begin(set, one.loss, {"", DataType::Float32, shape}, {"", labelType, labelShape});
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  for (size_t first = 0; first < rows; first += size_t(batch)) {
    size_t real = std::min(size_t(batch), rows - first);
    std::vector<float> output(row * size_t(batch), 77.0f), label(labelRow * size_t(batch), 1.0f);
    std::copy_n(one.output.begin() + long(first * row), real * row, output.begin());
    std::copy_n(one.label.begin() + long(first * labelRow), real * labelRow, label.begin());
    std::vector<int64_t> indices(label.begin(), label.end());
    TensorView labels = one.loss.hasClasses ? view(labelType, labelShape, indices.data())
                                            : view(labelType, labelShape, label.data());
    EXPECT_TRUE(addSlice(set, view(DataType::Float32, shape, output.data()), labels, int64_t(real)).isOk());
  }
  std::map<std::string, double> values;
  for (const auto &[name, value] : set.compute())
    values[name] = value;
  return values;
}

} // namespace

/// Double precision from equal float32 numbers: 1e-12 is some hundred roundings.
TEST(MetricsTest, AreThoseOfScikitLearnHoweverTheyAreCut) {
  std::vector<Case> cases = readCases();
  ASSERT_EQ(cases.size(), 11u);
  std::map<std::string, int> seen;
  for (const Case &one : cases)
    for (int64_t batch : {int64_t(1), int64_t(4), one.shape[0], one.shape[0] + 3}) {
      std::map<std::string, double> values = compute(one, batch);
      for (const auto &[spec, wanted] : one.metrics) {
        EXPECT_NEAR(values.at(spec), wanted, 1e-12 * std::max(1.0, std::fabs(wanted)))
            << one.name << ", " << spec << ", batch of " << batch;
        ++seen[spec.substr(0, spec.find(':'))];
      }
    }
  for (const MetricKind &kind : listMetrics())
    EXPECT_GT(seen[kind.name], 0) << kind.name;
}

TEST(MetricsTest, ProbabilitiesStandForTheirLargestClass) {
  Case one;
  one.loss.kind = "cross_entropy";
  one.loss.hasClasses = true;
  std::vector<float> output = {1, 3, 2, 5, 4, 0}, label = {0.2f, 0.5f, 0.3f, 0.1f, 0.8f, 0.1f};
  MetricSet set;
  ASSERT_TRUE(set.add("accuracy").isOk());
  ASSERT_TRUE(set.add("f1:average=micro").isOk());
  ASSERT_TRUE(begin(set, one.loss, {"", DataType::Float32, {2, 3}}, {"", DataType::Float32, {2, 3}}).isOk());
  TensorView outputs = view(DataType::Float32, {2, 3}, output.data()),
             labels = view(DataType::Float32, {2, 3}, label.data());
  ASSERT_TRUE(addSlice(set, outputs, labels, 2).isOk());
  EXPECT_EQ(set.compute()[0].second, 0.5);
  EXPECT_EQ(set.compute()[1].second, 0.5);
}

/// Wrong where classes are predicted, not a number where scores are summed or ranked.
TEST(MetricsTest, NotANumberIsNeverRight) {
  LossInfo loss;
  loss.kind = "cross_entropy";
  loss.hasClasses = true;
  std::vector<float> output = {NAN, 0, 0, 1};
  std::vector<int64_t> label = {0, 1};
  MetricSet set;
  for (const char *spec : {"accuracy", "topk:k=2", "f1:average=micro", "iou", "auc", "perplexity"})
    ASSERT_TRUE(set.add(spec).isOk());
  ASSERT_TRUE(begin(set, loss, {"", DataType::Float32, {2, 2}}, {"", DataType::Int64, {2}}).isOk());
  ASSERT_TRUE(addSlice(set, view(DataType::Float32, {2, 2}, output.data()),
                       view(DataType::Int64, {2}, label.data()), 2)
                  .isOk());
  auto values = set.compute();
  EXPECT_EQ(values[0].second, 0.5);
  EXPECT_EQ(values[1].second, 0.5);
  EXPECT_EQ(values[2].second, 2.0 / 3); // one of one prediction, and of two labels
  EXPECT_EQ(values[3].second, 0.5);
  EXPECT_TRUE(std::isnan(values[4].second));
  EXPECT_TRUE(std::isnan(values[5].second));
}

TEST(MetricsTest, NothingIsNotANumber) {
  LossInfo loss;
  loss.kind = "cross_entropy";
  loss.hasClasses = loss.hasIgnored = true;
  std::vector<float> output = {1, 2};
  std::vector<int64_t> label = {-100};
  MetricSet set;
  for (const char *spec : {"accuracy", "f1", "iou", "auc", "perplexity"})
    ASSERT_TRUE(set.add(spec).isOk());
  ASSERT_TRUE(begin(set, loss, {"", DataType::Float32, {1, 2}}, {"", DataType::Int64, {1}}).isOk());
  ASSERT_TRUE(addSlice(set, view(DataType::Float32, {1, 2}, output.data()),
                       view(DataType::Int64, {1}, label.data()), 1)
                  .isOk());
  for (const auto &[name, value] : set.compute())
    EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(MetricsTest, RefusesSpecs) {
  auto refuse = [](const std::string &spec) { return MetricSet().add(spec).getMessage(); };
  EXPECT_EQ(
      refuse("acuracy"),
      "metric 'acuracy': there is no metric 'acuracy'; there are accuracy, topk, f1, auc, iou, perplexity, "
      "token_accuracy, label_error_rate, mae, rmse and r2; did you mean 'accuracy'?");
  EXPECT_EQ(refuse("topk:n=3"),
            "metric 'topk:n=3': it has no option 'n'; it takes k, output, label, axis and "
            "ignore");
  EXPECT_EQ(refuse("topk:k=0"),
            "metric 'topk:k=0': k is '0', but it must be a whole number from 1 to 2147483647");
  EXPECT_EQ(refuse("topk:k"), "metric 'topk:k': 'k' is no key=value");
  EXPECT_EQ(refuse("topk:k=1,k=2"), "metric 'topk:k=1,k=2': k is given twice");
  EXPECT_EQ(refuse("f1:average=makro"),
            "metric 'f1:average=makro': average is 'makro'; there are binary, macro and "
            "micro; did you mean 'macro'?");
  EXPECT_EQ(refuse("mae:x=1"),
            "metric 'mae:x=1': it has no option 'x'; it takes output, label, axis and ignore");
  EXPECT_EQ(refuse(""),
            "metric '': there is no metric ''; there are accuracy, topk, f1, auc, iou, perplexity, "
            "token_accuracy, label_error_rate, mae, rmse and r2");
}

TEST(MetricsTest, RefusesWhatDoesNotFit) {
  LossInfo classes, values;
  classes.kind = "cross_entropy";
  classes.hasClasses = true;
  classes.output = values.output = "y";
  values.kind = "mse";
  values.compares = "values";
  auto refuse = [](const std::string &spec, const LossInfo &loss, const TensorShape &output,
                   const TensorShape &label) {
    MetricSet set;
    EXPECT_TRUE(set.add(spec).isOk());
    Status status = begin(set, loss, output, label);
    EXPECT_EQ(status.isOk() ? ExitCode::Refused : status.getCode(), ExitCode::Refused);
    return status.getMessage();
  };
  TensorShape three{"", DataType::Float32, {4, 3}}, label{"", DataType::Int64, {4}};
  EXPECT_EQ(refuse("accuracy", classes, three, label), "");
  EXPECT_EQ(refuse("mae", classes, three, label),
            "metric 'mae' needs labels that are values, and those of the loss 'cross_entropy' are indices of "
            "classes; "
            "it fits accuracy, topk, f1, auc, iou, perplexity and token_accuracy");
  EXPECT_EQ(refuse("f1", values, three, three),
            "metric 'f1' needs labels that are indices of classes, probabilities of classes or probabilities "
            "beside "
            "logits, and those of the loss 'mse' are values; it fits mae, rmse and r2");
  EXPECT_EQ(refuse("f1:average=binary", classes, three, label),
            "metric 'f1:average=binary': average=binary is for two classes, and the output has 3; macro and "
            "micro fit");
  EXPECT_EQ(refuse("auc", classes, three, label), "metric 'auc' is for two classes, and the output has 3");
  EXPECT_EQ(refuse("topk", classes, three, label),
            "metric 'topk': k is 5, and the output has 3 classes; give a smaller k");
  EXPECT_EQ(refuse("token_accuracy", classes, three, label),
            "metric 'token_accuracy' is for samples with a label for each of their tokens, and these have "
            "one label "
            "each; accuracy fits");
  EXPECT_EQ(refuse("mae", values, {}, three), "metric 'mae': the artifact does not give the output 'y', "
                                              "which feeds its loss; compile with --loss-input "
                                              "of a graph output");
  EXPECT_EQ(refuse("mae", values, three, {"", DataType::Float32, {4}}),
            "metric 'mae': the output 'y' has shape [4, 3], and its label [4], which cannot be compared");
  values.kind = "kl_div";
  values.compares = "";
  EXPECT_EQ(refuse("mae", values, three, three),
            "metric 'mae' does not fit the loss 'kl_div'; output=NAME,label=INPUT say what to compare");
  values.isInGraph = true;
  EXPECT_EQ(
      refuse("mae", values, three, {}),
      "metric 'mae': the graph computes its loss, so no label is known; output=NAME,label=INPUT say what to "
      "compare");
}

/// Two heads and their labels, whatever the loss is.
TEST(MetricsTest, ComparesWhatItIsTold) {
  LossInfo loss;
  loss.isInGraph = true;
  std::vector<float> logits = {1, 0, 2, 1, 3, 2, 2, 3}, boxes = {1, 2, 3, 4}, truth = {1, 2, 3, 6};
  std::vector<int64_t> tokens = {0, 0, 1, 1};
  std::vector<int32_t> flags = {1, 0, 1, 1};
  const std::vector<TensorShape> outputs = {{"logits", DataType::Float32, {2, 2, 2}},
                                            {"boxes", DataType::Float32, {4}}};
  const std::vector<TensorShape> inputs = {{"tokens", DataType::Int64, {2, 2}},
                                           {"truth", DataType::Float32, {4}},
                                           {"flags", DataType::Int32, {4}}};
  std::map<std::string, TensorView> views = {{"logits", view(DataType::Float32, {2, 2, 2}, logits.data())},
                                             {"boxes", view(DataType::Float32, {4}, boxes.data())},
                                             {"tokens", view(DataType::Int64, {2, 2}, tokens.data())},
                                             {"truth", view(DataType::Float32, {4}, truth.data())},
                                             {"flags", view(DataType::Int32, {4}, flags.data())}};
  MetricSet set;
  auto add = [&](const std::string &spec) {
    Status status = set.add(spec);
    return status.isOk() ? set.begin({loss}, outputs, inputs).getMessage() : status.getMessage();
  };
  EXPECT_EQ(add("accuracy:output=logits,label=tokens,axis=-1"), "");
  EXPECT_EQ(add("accuracy:output=logits,label=tokens,axis=1"), "");
  EXPECT_EQ(add("accuracy:output=logits,label=tokens,axis=-1,ignore=0"), "");
  EXPECT_EQ(add("mae:output=boxes,label=truth"), "");
  EXPECT_EQ(add("mae:output=boxes,label=flags"), "");
  EXPECT_EQ(add("accuracy:output=boxes,label=flags"), "");
  EXPECT_EQ(set.getOutputs().size(), 6u); // mae and accuracy of flags see them differently
  auto compute = [&](int64_t rows) {
    EXPECT_TRUE(set.begin({loss}, outputs, inputs).isOk());
    EXPECT_TRUE(set.addSlice([&](const std::string &name) { return views.at(name); }, rows, 2).isOk());
    std::vector<double> values;
    for (const auto &[name, value] : set.compute())
      values.push_back(value);
    return values;
  };
  // Predicted along the last axis: 0 0 0 1, along axis 1: 1 1 0 1; and all four boxes.
  EXPECT_EQ(compute(2), (std::vector<double>{0.75, 0.25, 0.5, 0.5, 1.75, 0.75}));
  EXPECT_EQ(compute(1)[3], 0); // two boxes a sample, and those of the first are right
  EXPECT_EQ(
      MetricSet().add("mae:output=boxes").getMessage(),
      "metric 'mae:output=boxes': output=NAME and label=INPUT belong together, and axis and ignore to them");
  auto refuse = [&](const std::string &spec) {
    MetricSet other;
    EXPECT_TRUE(other.add(spec).isOk());
    return other.begin({loss}, outputs, inputs).getMessage();
  };
  EXPECT_EQ(refuse("mae:output=box,label=truth"),
            "metric 'mae:output=box,label=truth': evaluation has no output 'box'; "
            "there are logits and boxes");
  EXPECT_EQ(refuse("accuracy:output=logits,label=tokens"),
            "metric 'accuracy:output=logits,label=tokens': several axes of the output 'logits' of shape [2, "
            "2, 2] may be "
            "that of the classes; axis=N says which");
  EXPECT_EQ(refuse("accuracy:output=logits,label=tokens,axis=3"),
            "metric 'accuracy:output=logits,label=tokens,axis=3': the output 'logits' has shape [2, 2, 2], "
            "and no such "
            "axis");
  EXPECT_EQ(refuse("mae:output=logits,label=tokens,axis=1"),
            "metric 'mae:output=logits,label=tokens,axis=1' needs labels that are values, and those of "
            "'tokens' are "
            "indices of classes; it fits accuracy, topk, f1, auc, iou, perplexity and token_accuracy");
}

/// Eight bytes a label are kept, and no more of them than is said.
TEST(MetricsTest, AucBoundsItsMemory) {
  LossInfo loss;
  loss.kind = "bce_with_logits";
  loss.compares = "decisions";
  MetricSet set;
  ASSERT_TRUE(set.add("auc").isOk());
  Shape huge = {int64_t(1) << 27};
  ASSERT_TRUE(begin(set, loss, {"", DataType::Float32, huge}, {"", DataType::Float32, huge}).isOk());
  float none = 0;
  EXPECT_EQ(addSlice(set, view(DataType::Float32, huge, &none), view(DataType::Float32, huge, &none), 1)
                .getMessage(),
            "metric 'auc' keeps 8 bytes for every label, and the data have more than 67108864 labels; "
            "--steps takes a "
            "part of them");
}

/// [3, 1, 3]: frames 1, NaN and 1; a frame with a NaN is of no class, and parts two labels.
TEST(MetricsTest, SequencesAreThoseOfTheirLoss) {
  LossInfo speech, other;
  speech.kind = "ctc";
  speech.blank = 0;
  speech.output = "y";
  speech.label = "label.speech";
  speech.inputs = {"target_lengths.speech"};
  other.kind = "cross_entropy";
  other.hasClasses = true;
  other.output = "z";
  other.label = "label.other";
  std::vector<float> scores = {0, 1, 0, NAN, 0, 0, 0, 1, 0};
  std::vector<int64_t> labels = {1, 1}, lengths = {2};
  const std::vector<TensorShape> outputs = {{"y", DataType::Float32, {3, 1, 3}},
                                            {"z", DataType::Float32, {1, 3}}},
                                 inputs = {{"label.speech", DataType::Int64, {1, 2}},
                                           {"label.other", DataType::Int64, {1}}};
  const std::string named = "label_error_rate:output=y,label=label.speech";
  auto compute = [&] {
    MetricSet set;
    EXPECT_TRUE(set.add(named).isOk());
    Status status = set.begin({other, speech}, outputs, inputs);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
    auto find = [&](const std::string &name) {
      return name == "label.speech"            ? view(DataType::Int64, {1, 2}, labels.data())
             : name == "target_lengths.speech" ? view(DataType::Int64, {1}, lengths.data())
                                               : view(DataType::Float32, {3, 1, 3}, scores.data());
    };
    EXPECT_TRUE(set.addSlice(find, 1, 1).isOk());
    return set.compute()[0].second;
  };
  EXPECT_EQ(compute(), 0.5); // 1, none, 1 beside 1, 1
  lengths = {1};
  EXPECT_EQ(compute(), 2);
  lengths = {0};
  EXPECT_TRUE(std::isnan(compute()));
  auto refuse = [&](const std::string &spec, const std::vector<LossInfo> &losses,
                    const std::vector<TensorShape> &shapes) {
    MetricSet set;
    EXPECT_TRUE(set.add(spec).isOk());
    return set.begin(losses, shapes, inputs).getMessage();
  };
  EXPECT_EQ(refuse("label_error_rate", {other, speech}, outputs),
            "metric 'label_error_rate': there are 2 losses; output=NAME,label=INPUT say what to compare");
  EXPECT_EQ(
      refuse("label_error_rate:output=z,label=label.other", {other, speech}, outputs),
      "metric 'label_error_rate:output=z,label=label.other': no loss 'ctc' compares 'z' with 'label.other', "
      "and the loss says which class is the blank");
  EXPECT_EQ(refuse(named + ",ignore=1", {speech}, outputs),
            "metric '" + named +
                ",ignore=1': axis and ignore are for labels of one class each; leave them out");
  EXPECT_EQ(refuse("label_error_rate", {other}, outputs),
            "metric 'label_error_rate' needs labels that are sequences of classes, and those of the loss "
            "'cross_entropy' are indices of classes; it fits accuracy, topk, f1, auc, iou, perplexity and "
            "token_accuracy");
  EXPECT_EQ(
      refuse("accuracy", {speech}, outputs),
      "metric 'accuracy' needs labels that are indices of classes, probabilities of classes or probabilities "
      "beside logits, and those of the loss 'ctc' are sequences of classes; it fits label_error_rate");
  EXPECT_EQ(
      refuse("label_error_rate", {speech}, {{"y", DataType::Float32, {3, 2, 3}}}),
      "metric 'label_error_rate': the output 'y' has shape [3, 2, 3], and its label [1, 2], which cannot be "
      "compared");
}

/// What the first `rows` samples of `batch` say of the loss cross_entropy.
static Accuracy countRight(const Shape &shape, const std::vector<float> &output, const Shape &labels,
                           const std::vector<int64_t> &label, int64_t rows, int64_t batch) {
  LossInfo loss;
  loss.kind = "cross_entropy";
  loss.hasClasses = loss.hasIgnored = true;
  loss.axis = 1;
  loss.ignoreIndex = -100;
  loss.output = "y";
  Comparison comparison;
  EXPECT_TRUE(compareLoss("accuracy", loss, {"y", DataType::Float32, shape},
                          {"label", DataType::Int64, labels}, comparison)
                  .isOk());
  Accuracy accuracy(comparison.facts.classes);
  readPredictions(
      comparison,
      [&](const std::string &name) {
        return name == "y" ? view(DataType::Float32, shape, output.data())
                           : view(DataType::Int64, labels, label.data());
      },
      rows, batch, [&](const Prediction &prediction) { accuracy.add(prediction); });
  return accuracy;
}

TEST(AccuracyTest, IsAlongTheClassAxisWithoutIgnoredLabels) {
  // Two samples, two classes, three places.
  Accuracy found =
      countRight({2, 2, 3}, {1, 0, 5, 0, 1, 5, 9, 9, 0, 0, 0, 1}, {2, 3}, {0, 1, 0, 0, -100, 0}, 2, 2);
  EXPECT_EQ(found.right, 4); // the tie goes to class 0
  EXPECT_EQ(found.counted, 5);
  EXPECT_EQ(found.compute(), 0.8);
}

TEST(AccuracyTest, APredictionThatIsNotANumberIsWrong) {
  Accuracy found = countRight({3, 2}, {NAN, NAN, 0, 1, 2, NAN}, {3}, {0, 1, 0}, 3, 3);
  EXPECT_EQ(found.right, 1);
  EXPECT_EQ(found.counted, 3);
  EXPECT_EQ(found.notNumbers, 2);
}

TEST(AccuracyTest, SamplesOfSeveralRowsCountWhole) {
  // Two samples of two tokens each, of which the first counts.
  Accuracy found = countRight({4, 2}, {1, 0, 0, 1, 1, 0, 1, 0}, {4}, {0, 1, 1, 1}, 1, 2);
  EXPECT_EQ(found.right, 2);
  EXPECT_EQ(found.counted, 2);
}
