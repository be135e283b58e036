// Several losses in one artifact, against PyTorch's training of the same model (test/losses/make-losses.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "support/Npy.h"
#include "test/e2e/Session.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// Float64 against float64: ten steps of which the order of operations differs.
constexpr double kTolerance = 1e-12;

const Words kLosses = {"--loss", "boxes=smooth_l1:beta=0.5@boxes:weight=0.25",
                       "--loss", "classes=cross_entropy@classes:weight=2",
                       "--loss", "pairs=cosine_embedding:margin=0.1@left+right"};
const Words kNames = {"boxes", "classes", "pairs"};

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class SeveralLossesTest : public testing::Test {
protected:
  std::string source(const std::string &name) const { return sourcePath("losses/" + name); }
  Words flags(const std::string &name, const Words &more) const {
    Words words{"train",   source("model.onnx"), "-o",     folder / name, "--shape",
                "batch=8", "--target",           "native", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void compile(const std::string &name, Words more = {}) {
    more.insert(more.end(), kLosses.begin(), kLosses.end());
    more.insert(more.end(), {"--optimizer", "sgd:lr=0.1,momentum=0.9"});
    mustRun(flags(name, more));
  }
  void train(const std::string &name, const Words &more) {
    Words words{"run", folder / name, "--data", source("data.npz"), "--no-shuffle", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    mustRun(words);
  }
  /// The lines of a metrics file that are steps.
  std::vector<Json> steps(const std::string &name) {
    std::vector<Json> lines;
    std::ifstream file(folder / name);
    for (std::string line; std::getline(file, line);)
      if (Json json = Json::parse(line); json.contains("ms"))
        lines.push_back(json);
    return lines;
  }
  std::string refusal(const Words &more) {
    Outcome outcome = runTool(flags("refused", more));
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    return outcome.errors;
  }

  TemporaryFolder folder;
  std::map<std::string, Values> golden = loadValues(source("golden.npz"));
};

TEST_F(SeveralLossesTest, TheWeightedSumIsTrainedAsInPyTorch) {
  compile("a", {"--precision", "f64"});
  train("a", {"--steps", "10", "--metrics", folder / "m.jsonl", "--save", folder / "ck"});
  std::vector<Json> lines = steps("m.jsonl");
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NEAR(lines[i]["loss"].get<double>(), valuesOf(golden, "step/loss").data[i], kTolerance) << i;
    for (const std::string &name : kNames)
      EXPECT_NEAR(lines[i]["loss." + name].get<double>(), valuesOf(golden, "step/" + name).data[i],
                  kTolerance)
          << i;
  }
  // 85 samples in batches of 8, and some labels are ignored: each mean is over its own samples.
  Outcome outcome =
      mustRun({"eval", folder / "a", "--data", source("data.npz"), "--load", folder / "ck", "--json"});
  Json found = Json::parse(outcome.text);
  double total = 0;
  const double weights[] = {0.25, 2, 1};
  for (size_t i = 0; i < kNames.size(); ++i) {
    double wanted = valuesOf(golden, "eval/" + kNames[i]).data[0];
    EXPECT_NEAR(found["loss." + kNames[i]].get<double>(), wanted, 1e-7) << kNames[i]; // printed as float32
    total += weights[i] * wanted;
  }
  EXPECT_NEAR(found["loss"].get<double>(), total, 3e-7);
  EXPECT_EQ(found["right.classes"].get<int64_t>(), int64_t(valuesOf(golden, "right").bits[0]));
  EXPECT_FALSE(found.contains("accuracy.boxes"));
  EXPECT_EQ(found["samples"].get<int>(), 85);
}

/// Each loss reads what a single one of its kind reads, and gives what that gives; slices make no difference.
TEST_F(SeveralLossesTest, EachHasWeightsOfItsOwn) {
  auto arrays = loadValues(source("data.npz"));
  const size_t samples = arrays["label.classes"].bits.size();
  auto floats = [&](const std::string &name, const std::vector<double> &values) {
    std::vector<float> narrow(values.begin(), values.end());
    Shape shape = {int64_t(samples)};
    if (values.size() != samples)
      shape.push_back(int64_t(values.size() / samples));
    return engine::OutputArray{name, DataType::Float32, shape, bytesOfAll(narrow)};
  };
  auto classes = [&](const std::string &name) {
    std::vector<int64_t> indices;
    for (uint64_t bits : arrays["label.classes"].bits)
      indices.push_back(int64_t(bits));
    return engine::OutputArray{name, DataType::Int64, {int64_t(samples)}, bytesOfAll(indices)};
  };
  std::vector<double> weights, others;
  for (size_t i = 0; i < samples; ++i) {
    weights.push_back(double(i % 4) * 0.5);
    others.push_back(double(i % 3) + 0.25);
  }
  auto write = [&](const std::string &name, std::vector<engine::OutputArray> all) {
    all.push_back(floats("x", arrays["x"].data));
    EXPECT_TRUE(engine::writeNpz(folder / name, all).isOk());
  };
  write("data.npz",
        {floats("label.boxes", arrays["label.boxes"].data), floats("sample_weight.boxes", weights),
         classes("label.classes"), floats("sample_weight.classes", others),
         floats("label.pairs", arrays["label.pairs"].data)});
  write("boxes.npz", {floats("label", arrays["label.boxes"].data), floats("sample_weight", weights)});
  write("classes.npz", {classes("label"), floats("sample_weight", others)});
  write("pairs.npz", {floats("label", arrays["label.pairs"].data)});
  std::vector<double> factors = {0.5, 2, 1, 0, 3};
  std::vector<uint8_t> bytes = bytesOfAll(factors);
  std::string file = folder.write("w.npy", formatNpyHeader(DataType::Float64, {5}) +
                                               std::string(bytes.begin(), bytes.end()));
  const Words specs = {"smooth_l1:beta=0.5,sample_weight=1@boxes",
                       "cross_entropy:sample_weight=1,class_weight=" + file + "@classes",
                       "cosine_embedding:reduction=sum@left+right"};
  auto evaluate = [&](const std::string &name, const Words &losses, const std::string &batch) {
    Words words{"train",   source("model.onnx"), "-o",       folder / name,
                "--shape", "batch=" + batch,     "--target", "native",
                "--quiet", "--precision",        "f64"};
    for (const std::string &loss : losses)
      words.insert(words.end(), {"--loss", loss});
    mustRun(words);
    const std::string data = folder / (losses.size() > 1 ? "data.npz" : name + ".npz");
    Outcome outcome = mustRun({"eval", folder / name, "--data", data, "--json"});
    EXPECT_EQ(outcome.errors.find("of which only"), std::string::npos) << outcome.errors;
    return Json::parse(outcome.text);
  };
  const Words all = {"boxes=" + specs[0], "classes=" + specs[1], "pairs=" + specs[2]};
  Json whole = evaluate("whole", all, "85"), cut = evaluate("cut", all, "8");
  for (size_t i = 0; i < kNames.size(); ++i) {
    Json alone = evaluate(kNames[i], {specs[i]}, "85");
    double wanted = alone["loss"].get<double>();
    const std::string key = "loss." + kNames[i];
    EXPECT_NEAR(whole[key].get<double>(), wanted, 1e-6 * wanted) << key; // printed as float32
    EXPECT_NEAR(cut[key].get<double>(), wanted, 1e-6 * wanted) << key;
  }
  Json parts = Json::parse(readFile(folder / "cut/manifest.json"))["loss"]["parts"];
  EXPECT_EQ(parts[0]["inputs"], Json({"sample_weight.boxes"}));
  EXPECT_EQ(parts[1]["inputs"], Json({"sample_weight.classes"}));
  EXPECT_EQ(parts[1]["class_weight"], Json(factors));
  EXPECT_FALSE(parts[0].contains("class_weight") || parts[2].contains("inputs"));
  mustRun({"run", folder / "cut", "--data", folder / "data.npz", "--steps", "1", "--quiet"});
}

/// Figures of one loss, as evaluations show them.
TEST_F(SeveralLossesTest, TheBestEvaluationMayBeThatOfOneLoss) {
  compile("a");
  auto run = [&](const std::string &best) {
    Words words{"run",          folder / "a",
                "--data",       source("data.npz"),
                "--eval-data",  source("data.npz"),
                "--no-shuffle", "--quiet",
                "--eval-every", "2",
                "--steps",      "6",
                "--metrics",    folder / "m.jsonl",
                "--best",       best,
                "--save-best",  folder / "best"};
    return runTool(words);
  };
  for (auto [best, key] : {std::pair("loss.pairs:max", "eval_loss.pairs"),
                           {"accuracy.classes:max", "accuracy.classes"},
                           {"loss:min", "eval_loss"}}) {
    Outcome outcome = run(best);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    std::ifstream file(folder / "m.jsonl");
    const bool isLargest = std::string(best).ends_with(":max");
    double found = isLargest ? -HUGE_VAL : HUGE_VAL, told = 0;
    for (std::string line; std::getline(file, line);) {
      Json json = Json::parse(line);
      if (json.value("event", "") == "eval")
        found = isLargest ? std::max(found, double(json[key])) : std::min(found, double(json[key]));
      if (json.value("event", "") == "best")
        told = json["value"];
    }
    EXPECT_EQ(told, found) << best;
    EXPECT_FALSE(readFile(folder / "best").empty());
    std::filesystem::remove(folder / "m.jsonl");
    std::filesystem::remove(folder / "best");
  }
  for (auto [best, message] :
       {std::pair("loss.pair:min",
                  "there are loss, loss.boxes, loss.classes, accuracy.classes and loss.pairs; did "
                  "you mean 'loss.pairs'?"),
        {"accuracy.boxes:max", "there is no accuracy.boxes in "},
        {"accuracy:max", "metric 'accuracy': there are 3 losses"},
        {"acuracy:max", "there is no metric 'acuracy'"}}) {
    Outcome outcome = run(best);
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::ifstream(folder / "m.jsonl").is_open()) << "before the run";
  }
}

TEST_F(SeveralLossesTest, MetricsSayWhatTheyCompare) {
  compile("a");
  Words words{"eval", folder / "a", "--data", source("data.npz"), "--json", "--metric"}, named = words;
  words.push_back("mae");
  named.push_back("mae:output=boxes,label=label.boxes");
  EXPECT_NE(runTool(words).errors.find(
                "metric 'mae': there are 3 losses; output=NAME,label=INPUT say what to compare"),
            std::string::npos);
  EXPECT_GT(Json::parse(mustRun(named).text)[named.back()].get<double>(), 0);
}

TEST_F(SeveralLossesTest, Float32IsWithinItsRounding) {
  compile("a");
  train("a", {"--steps", "10", "--metrics", folder / "m.jsonl"});
  std::vector<Json> lines = steps("m.jsonl");
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < lines.size(); ++i) // sums of about a hundred rounded numbers of about one
    EXPECT_NEAR(lines[i]["loss"].get<double>(), valuesOf(golden, "step/loss").data[i], 2e-6) << i;
}

TEST_F(SeveralLossesTest, HostsReadEachLossAndSetItsWeight) {
  compile("a", {"--gradients", "--accumulate", "2"});
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(source("data.npz"), data).isOk());
  Session session(folder / "a");
  session.writeSlice(*data, 0);
  auto read = [&](const std::string &name) {
    float value = NAN;
    EXPECT_EQ(ortc_read(session.get(), ("loss." + name).c_str(), &value, sizeof value), ORTC_OK)
        << session.message();
    return double(value);
  };
  double loss = 0, only = 0;
  for (auto step : {ortc_eval_step, ortc_gradients_step, ortc_accumulate_step, ortc_train_step}) {
    ASSERT_EQ(step(session.get(), &loss), ORTC_OK) << session.message();
    EXPECT_NEAR(loss, 0.25 * read("boxes") + 2 * read("classes") + read("pairs"), 1e-6);
    session.writeSlice(*data, 0);
  }
  ASSERT_EQ(ortc_set_scalar(session.get(), "loss.boxes.weight", 0), ORTC_OK);
  ASSERT_EQ(ortc_set_scalar(session.get(), "loss.pairs.weight", 0), ORTC_OK);
  ASSERT_EQ(ortc_eval_step(session.get(), &only), ORTC_OK);
  EXPECT_NEAR(only, 2 * read("classes"), 1e-6);
}

TEST_F(SeveralLossesTest, ResumesBitForBitWithItsWeights) {
  compile("a");
  train("a", {"--steps", "7", "--save", folder / "whole"});
  train("a", {"--steps", "3", "--save", folder / "first"});
  train("a", {"--steps", "4", "--load", folder / "first", "--save", folder / "second"});
  EXPECT_EQ(readTensors(folder / "whole"), readTensors(folder / "second"));
  EXPECT_EQ(valuesOf(loadValues(folder / "whole"), "loss.classes.weight").data[0], 2);
}

/// What is not asked for costs nothing: a loss that says what it reads has the bytes of --loss-input.
TEST_F(SeveralLossesTest, OneLossStaysAsItIs) {
  mustRun(flags("at", {"--loss", "mse@boxes"}));
  mustRun(flags("input", {"--loss", "mse", "--loss-input", "boxes"}));
  auto readProgram = [&](const std::string &name) {
    Json manifest = Json::parse(readFile(folder / (name + "/manifest.json")));
    manifest["flags"].erase("loss");
    return manifest;
  };
  EXPECT_EQ(readProgram("at"), readProgram("input"));
  mustRun(flags("named", {"--loss", "b=mse@boxes:weight=0.5"}));
  EXPECT_EQ(readProgram("named")["loss"]["weight"], "loss.b.weight");
}

TEST_F(SeveralLossesTest, ChecksGradientsOfAllLosses) {
  compile("a");
  Outcome outcome = runTool({"check", folder / "a", "--data", source("data.npz")});
  EXPECT_EQ(outcome.status, 0) << outcome.text << outcome.errors;
  outcome = runTool({"check", source("model.onnx"), "--shape", "batch=4", "--loss",
                     "margin_ranking:margin=0.2@left+right"});
  EXPECT_EQ(outcome.status, 0) << outcome.text << outcome.errors;
}

TEST_F(SeveralLossesTest, TrainOutputsAreThePredictionsBeforeTheUpdate) {
  compile("a", {"--train-outputs", "classes", "--train-outputs", "left", "--accumulate", "2"});
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(source("data.npz"), data).isOk());
  Session session(folder / "a");
  session.writeSlice(*data, 0);
  auto read = [&](const std::string &name, size_t columns) {
    std::vector<float> values(8 * columns, NAN);
    EXPECT_EQ(ortc_read(session.get(), name.c_str(), values.data(), values.size() * sizeof(float)), ORTC_OK)
        << session.message();
    return values;
  };
  double loss = 0;
  ASSERT_EQ(ortc_predict_step(session.get()), ORTC_OK);
  std::vector<float> classes = read("classes", 5), left = read("left", 7);
  std::vector<float> zeros(8 * 6);
  ASSERT_EQ(ortc_write(session.get(), "x", zeros.data(), zeros.size() * sizeof(float)), ORTC_OK);
  ASSERT_EQ(ortc_predict_step(session.get()), ORTC_OK); // other numbers in the outputs
  ASSERT_NE(read("classes", 5), classes);
  session.writeSlice(*data, 0);
  for (auto step : {ortc_accumulate_step, ortc_train_step}) {
    ASSERT_EQ(step(session.get(), &loss), ORTC_OK) << session.message();
    std::vector<float> now = read("classes", 5), other = read("left", 7);
    for (size_t i = 0; i < now.size(); ++i)
      ASSERT_NEAR(now[i], classes[i], 1e-6) << i;
    for (size_t i = 0; i < other.size(); ++i)
      ASSERT_NEAR(other[i], left[i], 1e-6) << i;
  }
  EXPECT_NE(refusal({"--loss", "mse@boxes", "--train-outputs", "hidden"})
                .find("--train-outputs 'hidden' is no output of the model; those are 'boxes', 'classes', "
                      "'left', 'right'"),
            std::string::npos);
}

TEST_F(SeveralLossesTest, AddsUpByTokens) {
  mustRun(flags("a", {"--loss", "cross_entropy@classes", "--accumulate", "4:by=tokens", "--precision", "f64",
                      "--optimizer", "sgd:lr=0.1,momentum=0.9"}));
  auto run = [&](const std::string &steps, const std::string &save, const Words &more) {
    Words words{"run",     folder / "a", "--data", source("tokens.npz"), "--no-shuffle", "--quiet",
                "--steps", steps,        "--save", folder / save};
    words.insert(words.end(), more.begin(), more.end());
    mustRun(words);
  };
  run("8", "whole", {});
  auto saved = loadValues(folder / "whole");
  size_t compared = 0;
  for (const auto &[name, wanted] : golden)
    if (name.starts_with("tokens/")) {
      const Values &got = valuesOf(saved, name.substr(7));
      ASSERT_EQ(got.data.size(), wanted.data.size()) << name;
      for (size_t i = 0; i < got.data.size(); ++i)
        EXPECT_NEAR(got.data[i], wanted.data[i], kTolerance) << name << " " << i;
      compared += !got.data.empty();
    }
  EXPECT_EQ(compared, 4u);
  EXPECT_EQ(valuesOf(saved, "accumulated.count").data[0], 0);
  run("6", "first", {}); // in the middle of the second four
  EXPECT_GT(valuesOf(loadValues(folder / "first"), "accumulated.count").data[0], 0);
  run("2", "second", {"--load", folder / "first"});
  EXPECT_EQ(readTensors(folder / "whole"), readTensors(folder / "second"));
  // The second slice has no label that counts.
  run("8", "watched", {"--stop-on-nan", "--metrics", folder / "tokens.jsonl"});
  EXPECT_EQ(readTensors(folder / "whole"), readTensors(folder / "watched"));
  for (const Json &step : steps("tokens.jsonl"))
    EXPECT_EQ(step["loss"] == 0, step["step"] == 2) << step;
  for (auto [words, message] :
       {std::pair(Words{"--loss", "mse@boxes", "--accumulate", "2:by=tokens"},
                  "--accumulate by=tokens counts labels that are class indices, and loss mse has none"),
        {Words{"--loss", "a=mse@boxes", "--loss", "b=cross_entropy@classes", "--accumulate", "2:by=tokens"},
         "--accumulate by=tokens counts the labels of one loss, and there are 2"},
        {Words{"--loss", "cross_entropy:sample_weight=1@classes", "--accumulate", "2:by=tokens"},
         "by=tokens takes the mean over labels that count alike, and loss cross_entropy has sample_weight"},
        {Words{"--loss", "cross_entropy@classes", "--accumulate", "1:by=tokens"}, "adds nothing up"},
        {Words{"--loss", "cross_entropy@classes", "--accumulate", "2:by=words"},
         "by is 'words' but must be one of"}})
    EXPECT_NE(refusal(words).find(message), std::string::npos) << message;
}

/// The mean of nothing, as in PyTorch: the step that updates has that loss, so that it can be stopped.
TEST_F(SeveralLossesTest, NoTokensAtAllAreNotANumber) {
  mustRun(flags("a", {"--loss", "cross_entropy@classes", "--accumulate", "2:by=tokens"}));
  std::vector<float> x(32 * 6, 0.5f);
  std::vector<int64_t> label(32, -100);
  label[0] = 1; // of the first two slices one has a label, of the others none
  ASSERT_TRUE(engine::writeNpz(folder / "none.npz", {{"x", DataType::Float32, {32, 6}, bytesOfAll(x)},
                                                     {"label", DataType::Int64, {32}, bytesOfAll(label)}})
                  .isOk());
  Words words{"run",     folder / "a", "--data",     folder / "none.npz", "--no-shuffle",
              "--quiet", "--save",     folder / "c", "--metrics",         folder / "none.jsonl"};
  Outcome outcome = runTool(words);
  EXPECT_EQ(outcome.status, 1); // no weights that are not finite are saved
  EXPECT_NE(outcome.errors.find("/c: step 4 is not saved: '"), std::string::npos) << outcome.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
  std::vector<Json> all = steps("none.jsonl");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_GT(all[0]["loss"], 0);
  EXPECT_EQ(all[1]["loss"], 0);
  EXPECT_EQ(all[2]["loss"], 0);
  EXPECT_TRUE(all[3]["loss"].is_null()) << all[3];
  words.push_back("--stop-on-nan");
  outcome = runTool(words);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.errors.find("the loss is not finite (step 4, epoch 0, slice 3"), std::string::npos)
      << outcome.errors;
}

TEST_F(SeveralLossesTest, DistilsATeacher) {
  const std::string teacher = source("teacher.onnx") + ":output=logits,temperature=2,weight=0.25";
  const Words common{"--optimizer", "sgd:lr=0.1,momentum=0.9", "--precision", "f64"};
  Words words{"--loss", "cross_entropy@classes", "--teacher", teacher};
  words.insert(words.end(), common.begin(), common.end());
  words = flags("a", words);
  words.erase(std::find(words.begin(), words.end(), "--quiet"));
  Outcome compiled = mustRun(words);
  EXPECT_NE(compiled.text.find("frozen by --teacher"), std::string::npos) << compiled.text;
  EXPECT_EQ(compiled.text.find("\ncopied"), std::string::npos) << compiled.text;
  mustRun({"run", folder / "a", "--data", source("teacher.npz"), "--no-shuffle", "--quiet", "--steps", "10",
           "--metrics", folder / "m.jsonl", "--save", folder / "ck"});
  std::vector<Json> lines = steps("m.jsonl");
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < lines.size(); ++i)
    for (auto [key, name] : {std::pair("loss", "loss"), {"loss.label", "label"}, {"loss.teacher", "teacher"}})
      EXPECT_NEAR(lines[i][key].get<double>(), valuesOf(golden, std::string("teacher/") + name).data[i],
                  kTolerance)
          << key << " " << i;
  Json manifest = Json::parse(readFile(folder / "a/manifest.json"));
  bool isFrozen = false;
  for (const Json &frozen : manifest["frozen"])
    isFrozen |= frozen["name"] == "teacher.shared.weight" && frozen["reason"] == "frozen by --teacher";
  EXPECT_TRUE(isFrozen) << manifest["frozen"];
  // The teacher is in no checkpoint, no prediction and no export.
  for (const auto &[name, values] : loadValues(folder / "ck"))
    EXPECT_FALSE(name.starts_with("teacher.")) << name;
  mustRun({"predict", folder / "a", "--data", source("teacher.npz"), "-o", folder / "p.npz", "--quiet"});
  EXPECT_EQ(loadValues(folder / "p.npz").count("teacher.logits"), 0u);
  mustRun({"export", folder / "a", "--load", folder / "ck", "-o", folder / "e.onnx", "--quiet"});
  EXPECT_EQ(readFile(folder / "e.onnx").find("teacher."), std::string::npos);
  Outcome outcome = mustRun({"eval", folder / "a", "--data", source("teacher.npz"), "--json"});
  EXPECT_TRUE(Json::parse(outcome.text).contains("accuracy.label")) << outcome.text;
  // The only output of a model needs no name.
  proto::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(readFile(source("model.onnx"))));
  auto *outputs = model.mutable_graph()->mutable_output();
  for (int i = outputs->size(); i-- > 0;)
    if (outputs->Get(i).name() != "classes")
      outputs->DeleteSubrange(i, 1);
  Words alone = flags("b", {"--teacher", teacher});
  alone[1] = folder.write("one.onnx", model.SerializeAsString());
  alone.insert(alone.end(), common.begin(), common.end());
  mustRun(alone);
  mustRun({"run", folder / "b", "--data", source("teacher.npz"), "--no-shuffle", "--quiet", "--steps", "10",
           "--metrics", folder / "b.jsonl"});
  EXPECT_EQ(loadLosses(folder / "b.jsonl"), loadLosses(folder / "m.jsonl"));
}

TEST_F(SeveralLossesTest, RefusesATeacherThatDoesNotFit) {
  auto expect = [&](const Words &more, const std::string &teacher, const std::string &message) {
    Words words{"--teacher", teacher};
    words.insert(words.end(), more.begin(), more.end());
    std::string errors = refusal(words);
    EXPECT_NE(errors.find(message), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  };
  const std::string file = source("teacher.onnx");
  const Words loss{"--loss", "cross_entropy@classes"};
  auto edited = [&](const std::string &name, const std::function<void(proto::ModelProto &)> &change) {
    proto::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(readFile(file)));
    change(model);
    return folder.write(name, model.SerializeAsString()) + ":output=logits";
  };
  expect(loss, file, "must be FILE.onnx:output=NAME,temperature=1,weight=0.5");
  expect(loss, file + ":output=", "output is '' but must be a name");
  expect(loss, folder / "away.onnx:output=logits",
         "error: --teacher " + (folder / "away.onnx") + ": cannot be opened: No such file or directory");
  expect(loss, folder.write("cut.onnx", readFile(file).substr(0, 99)) + ":output=logits",
         "error: --teacher '" + (folder / "cut.onnx") + "' is cut short or no ONNX model");
  expect(loss, file + ":output=none", "the teacher has no output 'none'; it has 'logits'");
  expect(loss, file + ":output=logits,weight=2", "weight is '2' but must be a number from 0 to 1");
  expect({"--loss", "cross_entropy"}, file + ":output=logits",
         "and --loss cross_entropy names none of 'boxes', 'classes', 'left', 'right'; write --loss "
         "cross_entropy@OUTPUT");
  expect({"--loss", "none"}, file + ":output=logits", "needs a loss of the labels");
  expect({"--loss", "cross_entropy@classes", "--accumulate", "2:by=tokens"}, file + ":output=logits",
         "adds a loss of every sample, and --accumulate by=tokens divides by labels; leave by=tokens out");
  expect(loss,
         edited("name.onnx",
                [](auto &model) {
                  model.mutable_graph()->mutable_input(0)->set_name("y");
                  model.mutable_graph()->mutable_node(0)->set_input(0, "y");
                }),
         "the teacher has an input 'y', which the model has not; inputs of the model are 'x'");
  expect(loss,
         edited("shape.onnx",
                [](auto &model) {
                  auto *type = model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
                  type->mutable_shape()->mutable_dim(1)->set_dim_value(7);
                }),
         "input 'x' is FLOAT[batch, 7] in the teacher and FLOAT[batch, 6] in the model");
  expect(
      loss,
      edited("type.onnx",
             [](auto &model) {
               model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
                   11);
             }),
      "input 'x' is DOUBLE[batch, 6] in the teacher and FLOAT[batch, 6] in the model");
  expect(loss, edited("opset.onnx", [](auto &model) { model.mutable_opset_import(0)->set_version(17); }),
         "the teacher has opset 17 and the model has opset 18; export both with one");
  expect(loss,
         edited("large.onnx",
                [](auto &model) { // another number of classes
                  auto *weight = model.mutable_graph()->mutable_initializer(0);
                  weight->set_dims(0, 4);
                  weight->set_raw_data(weight->raw_data().substr(0, 4 * 6 * 4));
                  auto *type =
                      model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
                  type->mutable_shape()->mutable_dim(1)->set_dim_value(4);
                }),
         "the outputs that loss distillation reads do not fit together");
}

TEST_F(SeveralLossesTest, RefusesWhatDoesNotFit) {
  auto expect = [&](const Words &more, const std::string &message) {
    std::string errors = refusal(more);
    EXPECT_NE(errors.find(message), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  };
  expect({"--loss", "a=mse@boxes", "--loss", "a=mse@left"},
         "two losses are called 'a', which would share the label 'label.a'");
  expect({"--loss", "mse@boxes", "--loss", "a=mse@left"}, "'mse@boxes' has no name, and there are 2 losses");
  expect({"--loss", "a=mse", "--loss", "b=mse@left"}, "loss 'a' does not say which output it reads");
  expect({"--loss", "a=mse@boxes", "--loss", "b=mse@nothing"},
         "no node that gives a value of that name; its outputs are 'boxes', 'classes', 'left', 'right'");
  expect({"--loss", "mse@boxes:weight=inf"}, "weight is 'inf' but must be a number from 0 to 3.4e38");
  expect({"--loss", "mse@boxes:weight=-1"}, "weight is '-1' but must be a number from 0 to 3.4e38");
  expect({"--loss", "a=mse@boxes:wieght=1"},
         "loss 'a' has no option 'wieght'; it takes weight; did you mean 'weight'?");
  expect({"--loss", "a=mse@boxes:weight=1,foo=1"}, "loss 'a' has no option 'foo'; it takes weight");
  expect({"--loss", "smooth_l1@boxes:beta=2"},
         "loss 'smooth_l1': beta is a key of smooth_l1; write smooth_l1:beta=2@OUTPUT");
  expect({"--loss", "a=cross_entropy:class_weight=@classes"},
         "loss 'cross_entropy': class_weight is '' but must be an .npy file, or none");
  expect({"--loss", "mze@boxes"}, "none; did you mean 'mse'?");
  expect({"--loss", "none", "--loss", "a=mse@boxes"}, "--loss none is no loss, and there are others");
  expect({"--loss", "mse@boxes", "--loss-input", "left"}, "--loss-input 'left' contradicts --loss mse@boxes");
  expect({"--loss", "cosine_embedding@left"},
         "loss 'cosine_embedding' reads 2 outputs; write cosine_embedding@INPUT1+INPUT2");
  expect({"--loss", "cosine_embedding@left+boxes"},
         "the outputs that loss cosine_embedding reads do not fit together");
}

} // namespace
