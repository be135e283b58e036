// What a step does beside the optimizer's formula: schedules, norms, averages, penalties, masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/writers.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Json = nlohmann::json;

class UpdateTest : public testing::Test {
protected:
  Outcome compile(const std::string &name, const std::vector<std::string> &more) {
    std::vector<std::string> arguments{"train",    entry.model(), "-o",        folder / name, "--shape",
                                       "batch=64", "--target",    getTarget(), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runTool(arguments);
  }
  virtual std::string getTarget() const { return "native"; }
  virtual std::string getDevice() const { return "cpu"; }
  void mustCompile(const std::string &name, const std::vector<std::string> &more) {
    Outcome outcome = compile(name, more);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
  }
  void train(const std::string &name, const std::string &save, int steps,
             const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{
        "run",    folder / name, "--data",  entry.data(), "--no-shuffle", "--steps", std::to_string(steps),
        "--save", folder / save, "--quiet", "--device",   getDevice()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
  }
  std::vector<Json> readSteps(const std::string &name) const {
    std::ifstream file(folder / name);
    std::vector<Json> steps;
    for (std::string line; std::getline(file, line);)
      if (Json step = Json::parse(line); step.contains("loss"))
        steps.push_back(step);
    return steps;
  }
  /// 12 steps, and 5, saved, loaded, 7 more.
  void expectResumes(const std::string &name) {
    train(name, "whole.safetensors", 12);
    train(name, "first.safetensors", 5);
    train(name, "second.safetensors", 7, {"--load", folder / "first.safetensors"});
    EXPECT_TRUE(readFile(folder / "whole.safetensors") == readFile(folder / "second.safetensors"));
  }
  /// The bits of a run whose host computes the rate, which has the same formulas.
  void expectBitsOfTheHosts(const std::vector<const char *> &schedules) {
    mustCompile("host", {"--optimizer", "adamw:lr=0.02"});
    for (const char *spec : schedules) {
      SCOPED_TRACE(spec);
      mustCompile("inside", {"--optimizer", "adamw:lr=0.02", "--schedule", std::string("lr=") + spec});
      train("host", "host.safetensors", 10, {"--lr-schedule", spec, "--metrics", folder / "host.jsonl"});
      train("inside", "inside.safetensors", 10, {"--metrics", folder / "inside.jsonl"});
      auto host = loadValues(folder / "host.safetensors"), inside = loadValues(folder / "inside.safetensors");
      ASSERT_EQ(host.size(), inside.size());
      for (const auto &[name, values] : host)
        if (name != "lr") // the base, where the artifact computes the rate
          EXPECT_EQ(valuesOf(inside, name).data, values.data) << name;
      EXPECT_EQ(valuesOf(inside, "lr").data, std::vector<double>{0.02});
      auto wanted = readSteps("host.jsonl"), got = readSteps("inside.jsonl");
      ASSERT_EQ(wanted.size(), 10u);
      ASSERT_EQ(got.size(), 10u);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_EQ(got[i]["lr"], wanted[i]["lr"]) << i;
    }
  }
  void expectRefused(const std::vector<std::string> &more, const std::string &message) {
    Outcome outcome = compile("refused", more);
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::ifstream(folder / "refused/model.ortc").is_open());
  }

  TemporaryFolder folder;
  ZooEntry entry{"mlp-digits"}; // 5 batches of 64
};

TEST_F(UpdateTest, SchedulesHaveTheBitsOfTheHosts) {
  expectBitsOfTheHosts({"linear:warmup=3,total=9,min=0.001", "step:step_size=2,gamma=0.7",
                        "multistep:milestones=2/5", "exponential:gamma=0.9", "polynomial:total=11,power=1.7",
                        "cosine:warmup=3,total=11", "cosine_restarts:period=3,mult=2", "one_cycle:total=10",
                        "inverse_sqrt:warmup=2", "wsd:decay=4,total=9,anneal=sqrt"});
}

class DeviceUpdateTest : public UpdateTest {
  std::string getTarget() const override { return "sm_80"; }
  std::string getDevice() const override { return "cuda"; }
};

TEST_F(DeviceUpdateTest, SchedulesHaveTheBitsOfTheHosts) {
  expectBitsOfTheHosts(
      {"cosine:warmup=3,total=11", "polynomial:total=11,power=1.7", "wsd:decay=4,total=9,anneal=sqrt"});
}

/// Updates count, not slices; a run that goes on may begin between two updates.
TEST_F(UpdateTest, AccumulatedStepsCountOnce) {
  mustCompile("a", {"--optimizer", "adamw:lr=0.02", "--accumulate", "2", "--schedule",
                    "lr=multistep:milestones=1/2", "--ema", "decay=0.9", "--swa", "start=1"});
  expectResumes("a");
  train("a", "six.safetensors", 6, {"--metrics", folder / "six.jsonl"});
  auto steps = readSteps("six.jsonl");
  ASSERT_EQ(steps.size(), 6u);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(double(steps[i]["lr"]), 0.02 * std::pow(0.1, double(i / 2)), 1e-15) << i;
  auto found = loadValues(folder / "six.safetensors");
  EXPECT_EQ(valuesOf(found, "ema.n_averaged").data, std::vector<double>{3});
  EXPECT_EQ(valuesOf(found, "swa.n_averaged").data, std::vector<double>{2});
}

TEST_F(UpdateTest, SkippedUpdatesMoveNoAverage) {
  mustCompile("a", {"--optimizer", "sgd:lr=0.1", "--loss-scale", "dynamic:init=1e30,backoff=1e-20",
                    "--precision", "f16", "--ema", "decay=0.9"});
  train("a", "a.safetensors", 5);
  auto found = loadValues(folder / "a.safetensors");
  double skipped = valuesOf(found, "loss_scale.skipped").data.at(0);
  EXPECT_GE(skipped, 1);
  EXPECT_LT(skipped, 5);
  EXPECT_EQ(valuesOf(found, "ema.n_averaged").data, std::vector<double>{5 - skipped});
}

/// A loop without a host's schedule; and the base is a number that a host may set.
TEST_F(UpdateTest, AStepKnowsItsRate) {
  mustCompile("inside", {"--optimizer", "sgd:lr=0.5", "--schedule", "lr=multistep:milestones=1,gamma=1e-12"});
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  Session session(folder / "inside");
  auto before = session.readPersistent();
  session.writeSlice(*data, 0);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
  auto first = session.readPersistent();
  EXPECT_FALSE(first["0.weight"] == before["0.weight"]);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
  EXPECT_TRUE(session.readPersistent()["0.weight"] == first["0.weight"]);
  ASSERT_EQ(ortc_set_scalar(session.get(), "lr", 1e12), ORTC_OK);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
  EXPECT_FALSE(session.readPersistent()["0.weight"] == first["0.weight"]);
}

TEST_F(UpdateTest, SchedulesResume) {
  mustCompile("a", {"--optimizer", "adamw:lr=0.02", "--schedule", "lr=cosine:warmup=3,total=11"});
  expectResumes("a");
}

TEST_F(UpdateTest, SchedulesThatDoNotFitAreRefused) {
  expectRefused(
      {"--schedule", "lr=cosine:warmup=3"},
      "--schedule: learning-rate schedule 'cosine:warmup=3': it needs total=N, the steps of the whole "
      "training: an artifact does not know where a run ends");
  expectRefused({"--schedule", "beta1=cosine:total=3"},
                "'beta1=cosine:total=3' names no hyper-parameter that has a "
                "schedule; write lr=KIND:key=value,...");
  expectRefused({"--schedule", "lr=cosin:total=3"},
                "there are constant, linear, step, multistep, exponential");
  expectRefused({"--loss", "none", "--schedule", "lr=constant:warmup=3"},
                "--schedule needs a loss, and --loss none compiles the forward part only");
  mustCompile("a", {"--schedule", "lr=constant:warmup=3"});
  for (const char *schedule : {"constant:warmup=3", "plateau"}) {
    Outcome outcome = runTool({"run", folder / "a", "--data", entry.data(), "--eval-data", entry.data(),
                               "--lr-schedule", schedule});
    EXPECT_EQ(outcome.status, 2) << schedule;
    EXPECT_NE(outcome.errors.find(
                  "computes its rate by itself, by --schedule lr=constant:warmup=3; leave the flag out"),
              std::string::npos)
        << outcome.errors;
  }
}

/// Sums of squares in float32 over some thousand elements.
constexpr double kNormTolerance = 1e-5;

TEST_F(UpdateTest, StepsGiveNorms) {
  mustCompile("gradients", {"--optimizer", "sgd:lr=0.1", "--gradients"});
  for (const std::vector<std::string> &more :
       {std::vector<std::string>{}, {"--clip-norm", "0.3"}, {"--clip-value", "0.001"}}) {
    std::vector<std::string> flags{"--optimizer", "sgd:lr=0.1", "--step-outputs", "grad_norm,param_norm"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustCompile("norms", flags);
    train("norms", "one.safetensors", 1, {"--metrics", folder / "one.jsonl"});
    mustRun({"gradients", folder / "gradients", "--data", entry.data(), "-o", folder / "g.safetensors",
             "--quiet"});
    double gradients = 0, parameters = 0;
    for (const auto &[name, values] : loadValues(folder / "g.safetensors"))
      for (double value : values.data)
        gradients += name == "loss" ? 0 : value * value;
    train("norms", "none.safetensors", 0);
    for (const auto &[name, values] : loadValues(folder / "none.safetensors"))
      for (double value : values.data)
        parameters += values.shape.empty() ? 0 : value * value;
    auto steps = readSteps("one.jsonl");
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_NEAR(double(steps[0]["grad_norm"]), std::sqrt(gradients), kNormTolerance * std::sqrt(gradients));
    EXPECT_NEAR(double(steps[0]["param_norm"]), std::sqrt(parameters),
                kNormTolerance * std::sqrt(parameters));
  }
}

/// The bits of training do not depend on who looks, and a step without an update has no norms.
TEST_F(UpdateTest, NormsAreNoPartOfTheTraining) {
  for (const std::vector<std::string> &more :
       {std::vector<std::string>{"--clip-norm", "0.3"}, {"--accumulate", "2"}}) {
    std::vector<std::string> plain{"--optimizer", "adamw:lr=0.02"};
    plain.insert(plain.end(), more.begin(), more.end());
    std::vector<std::string> norms = plain;
    norms.insert(norms.end(), {"--step-outputs", "param_norm,grad_norm"});
    mustCompile("plain", plain);
    mustCompile("norms", norms);
    train("plain", "plain.safetensors", 6);
    train("norms", "norms.safetensors", 6, {"--metrics", folder / "norms.jsonl"});
    EXPECT_TRUE(readTensors(folder / "plain.safetensors") == readTensors(folder / "norms.safetensors"));
    auto steps = readSteps("norms.jsonl");
    ASSERT_EQ(steps.size(), 6u);
    EXPECT_EQ(steps[0].contains("grad_norm"), more[0] != "--accumulate");
    EXPECT_TRUE(steps[1].contains("grad_norm"));
  }
  expectRefused({"--step-outputs", "grad_norm,loss"},
                "--step-outputs: 'loss' is no number of a step; there are grad_norm and param_norm");
}

/// A norm that clipping computes anyway needs no memory of its own, nor does it keep gradients longer.
TEST_F(UpdateTest, NormsTakeNoMemory) {
  auto plan = [&](const std::vector<std::string> &more) {
    std::vector<std::string> arguments{
        "plan",     ZooEntry("gpt2-tiny").model(), "--target", "x86-64-v3", "--quiet",
        "--report", folder / "plan.json"};
    for (const auto &list : {ZooEntry("gpt2-tiny").flags, more})
      arguments.insert(arguments.end(), list.begin(), list.end());
    mustRun(arguments);
    return int64_t(Json::parse(std::ifstream(folder / "plan.json"))["entries"][0]["memory"]["transient"]);
  };
  int64_t plain = plan({}), clipped = plan({"--clip-norm", "1"});
  EXPECT_EQ(plan({"--clip-norm", "1", "--step-outputs", "grad_norm"}), clipped);
  // Without clipping, sums of squares alone are kept: 8 bytes of each of 28 gradients, and parts of such sums.
  EXPECT_LE(plan({"--step-outputs", "grad_norm"}), plain + 1024);
}

/// Averages of the parameters after each step, which runs of as many steps have.
TEST_F(UpdateTest, AveragesAreThoseOfTheSteps) {
  mustCompile("a", {"--optimizer", "sgd:lr=0.1", "--ema", "decay=0.8", "--swa", "start=2"});
  constexpr int kSteps = 5;
  std::map<std::string, std::vector<double>> ema, swa;
  for (int step = 1; step <= kSteps; ++step) {
    train("a", "step.safetensors", step);
    for (const auto &[name, values] : loadValues(folder / "step.safetensors")) {
      if (!name.ends_with("weight") && !name.ends_with("bias"))
        continue;
      std::vector<double> &fading = ema[name], &mean = swa[name];
      if (step == 1)
        fading = values.data;
      mean.resize(values.data.size());
      for (size_t i = 0; i < values.data.size(); ++i) {
        fading[i] += (values.data[i] - fading[i]) * 0.2;
        if (step > 2)
          mean[i] += values.data[i] / (kSteps - 2);
      }
    }
  }
  auto found = loadValues(folder / "step.safetensors");
  EXPECT_EQ(valuesOf(found, "ema.n_averaged").data, std::vector<double>{kSteps});
  EXPECT_EQ(valuesOf(found, "swa.n_averaged").data, std::vector<double>{kSteps - 2});
  ASSERT_EQ(ema.size(), 4u);
  for (const auto &[name, values] : ema)
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(valuesOf(found, name + ".ema").data[i], values[i], 1e-6)
          << name << " " << i; // float32 of size 1
      ASSERT_NEAR(valuesOf(found, name + ".swa").data[i], swa[name][i], 1e-6) << name << " " << i;
    }
  expectResumes("a");
}

TEST_F(UpdateTest, InspectShowsWhatWasAskedFor) {
  mustCompile("a",
              {"--optimizer", "sgd:lr=0.1", "--group", ".*bias:lr_scale=2", "--accumulate", "2:by=tokens",
               "--schedule", "lr=linear:warmup=3,total=9", "--ema", "decay=0.8", "--swa", "start=2"});
  std::string text = mustRun({"inspect", folder / "a"}).text;
  for (const char *row :
       {"\ngroups     regex=.*bias,lr_scale=2", "\naccumulate 2\n", "\naccumulate_by tokens\n",
        "\nschedule   lr=linear:warmup=3,", "\nema        decay=0.8", "\nswa        start=2,every=1\n"})
    EXPECT_NE(text.find(row), std::string::npos) << row << text;
}

/// What eval, predict and export make of averages is what they make of a checkpoint with these as its weights.
TEST_F(UpdateTest, AveragesTakeThePlaceOfParameters) {
  for (const std::string storage : {"f32", "bf16"}) {
    mustCompile("a", {"--optimizer", "adamw:lr=0.02", "--ema", "decay=0.8", "--parameters", storage});
    train("a", "trained.safetensors", 6);
    std::string ck = folder / "trained.safetensors";
    auto run = [&](const std::string &command, const std::vector<std::string> &more) {
      std::vector<std::string> arguments{command, folder / "a", "--load", ck, "--quiet"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return mustRun(arguments).text;
    };
    std::string plain = run("eval", {"--data", entry.data()});
    std::string averaged = run("eval", {"--data", entry.data(), "--weights", "ema"});
    EXPECT_NE(plain, averaged);
    run("export", {"--weights", "ema", "-o", folder / "ema.onnx"});
    run("predict", {"--data", entry.data(), "--weights", "ema", "-o", folder / "ema.npz"});
    // The exported model, compiled for prediction alone.
    mustRun({"train", folder / "ema.onnx", "-o", folder / "exported", "--shape", "batch=64", "--target",
             "native", "--loss", "none", "--quiet"});
    mustRun(
        {"predict", folder / "exported", "--data", entry.data(), "-o", folder / "exported.npz", "--quiet"});
    auto wanted = loadValues(folder / "exported.npz"), got = loadValues(folder / "ema.npz");
    ASSERT_EQ(wanted.size(), 1u);
    const Values &outputs = wanted.begin()->second;
    ASSERT_EQ(valuesOf(got, wanted.begin()->first).data.size(), outputs.data.size());
    for (size_t i = 0; i < outputs.data.size();
         ++i) // constants may be packed otherwise: other orders of sums
      ASSERT_NEAR(got.begin()->second.data[i], outputs.data[i], 1e-4) << storage << " " << i;
  }
}

/// Evaluations within a training: what eval says of the checkpoint, and no bit of the training changes.
TEST_F(UpdateTest, TrainingsEvaluateAverages) {
  mustCompile("a", {"--optimizer", "adamw:lr=0.02", "--ema", "decay=0.8", "--swa", "start=7"});
  train("a", "plain.safetensors", 10);
  for (const std::string kind : {"ema", "swa"}) {
    train("a", "evaluated.safetensors", 10,
          {"--eval-data", entry.data(), "--eval-weights", kind, "--metrics", folder / "m.jsonl"});
    EXPECT_TRUE(readFile(folder / "plain.safetensors") == readFile(folder / "evaluated.safetensors"));
    std::ifstream file(folder / "m.jsonl");
    std::vector<Json> evaluations;
    for (std::string line; std::getline(file, line);)
      if (Json event = Json::parse(line); event.value("event", "") == "eval")
        evaluations.push_back(event);
    ASSERT_EQ(evaluations.size(), 2u); // after 5 steps, with no mean yet
    EXPECT_EQ(evaluations[0].contains("weights"), kind == "ema");
    EXPECT_EQ(evaluations[1]["weights"], kind);
    Json eval = Json::parse(mustRun({"eval", folder / "a", "--data", entry.data(), "--load",
                                     folder / "plain.safetensors", "--weights", kind, "--json", "--quiet"})
                                .text);
    EXPECT_EQ(float(evaluations[1]["eval_loss"]), float(eval["loss"]));
  }
  Outcome outcome = runTool({"run", folder / "a", "--data", entry.data(), "--eval-weights", "ema"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("--eval-weights needs --eval-data FILE"), std::string::npos)
      << outcome.errors;
}

TEST_F(UpdateTest, AveragesThatAreNotThereAreRefused) {
  mustCompile("a", {"--optimizer", "sgd:lr=0.1", "--ema", "decay=0.9"});
  auto refuse = [&](const std::string &kind, const std::string &message) {
    Outcome outcome = runTool({"eval", folder / "a", "--data", entry.data(), "--weights", kind});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
  };
  refuse("mean", "--weights: 'mean' is no kind of averages; there are ema and swa");
  refuse("swa", "has no such averages; compile it with --swa");
  refuse("ema", "nothing was averaged yet; give --load with a checkpoint of a training that has come so far");
  expectRefused({"--ema", "decay=1"},
                "error: --ema: average: decay is '1' but must be a number of at least 0 and below 1");
  expectRefused({"--ema", "decay=0.9,gamma=2"}, "--ema: gamma and power are those of warmup=1");
  expectRefused({"--ema", "rate=0.9"},
                "error: --ema: average has no option 'rate'; it takes decay, warmup, gamma, power");
  expectRefused({"--swa", "start=-1"}, "--swa: start is -1 but must be from 0 to 2^50");
  expectRefused({"--loss", "none", "--ema", "decay=0.9"},
                "--ema needs a loss, and --loss none compiles the forward part only");
}

TEST_F(UpdateTest, PenaltiesAndLimitsResume) {
  mustCompile("a", {"--optimizer", "adamw:lr=0.02", "--regularize", ".*weight:l1=1e-4,l2=1e-3,max_norm=0.7",
                    "--ema", "decay=0.9"});
  expectResumes("a");
  auto found = loadValues(folder / "whole.safetensors");
  const Values &weight = valuesOf(found, "0.weight");
  ASSERT_EQ(weight.shape.size(), 2u);
  double largest = 0;
  for (int64_t row = 0; row < weight.shape[0]; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < weight.shape[1]; ++i)
      sum += std::pow(weight.data[size_t(row * weight.shape[1] + i)], 2);
    largest = std::max(largest, std::sqrt(sum));
  }
  EXPECT_LE(largest, 0.7 + 1e-6);
  EXPECT_GE(largest, 0.7 - 1e-6); // some are at the limit
  expectRefused({"--regularize", ".*weight"},
                "'.*weight' regularises nothing; write REGEX:l1=X,l2=Y,max_norm=Z");
  Outcome unmatched = compile("unmatched", {"--regularize", "0.wight:l1=1"});
  EXPECT_NE(unmatched.errors.find("--regularize '0.wight' matches no trained tensor; closest: '0.weight'"),
            std::string::npos)
      << unmatched.errors;
  expectRefused({"--regularize", ".*bias:max_norm=1,axis=1"}, "axis is 1 but '0.bias' has 1 dimension");
}

class MaskTest : public UpdateTest {
protected:
  std::string writeMask(const std::string &name, const std::string &tensor, Shape shape, float other = 1) {
    std::vector<uint8_t> bytes;
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    for (int64_t i = 0; i < count; ++i) {
      float value = i % 3 == 0 ? 0 : i == 1 ? other : 1;
      auto first = reinterpret_cast<const uint8_t *>(&value);
      bytes.insert(bytes.end(), first, first + sizeof value);
    }
    EXPECT_TRUE(engine::writeNpz(folder / name, {{tensor, DataType::Float32, shape, bytes}}).isOk());
    return folder / name;
  }
};

TEST_F(MaskTest, MaskedWeightsStayZero) {
  mustCompile("a", {"--optimizer", "adamw:lr=0.02,weight_decay=0.1", "--mask",
                    writeMask("mask.npz", "0.weight", {64, 64})});
  for (int steps : {0, 3}) {
    train("a", "m.safetensors", steps);
    auto found = loadValues(folder / "m.safetensors");
    const Values &weight = valuesOf(found, "0.weight"), &state = valuesOf(found, "0.weight.exp_avg_sq");
    size_t zeros = 0;
    ASSERT_EQ(weight.data.size(), 64u * 64);
    for (size_t i = 0; i < weight.data.size(); ++i) {
      zeros += weight.data[i] == 0;
      if (i % 3 == 0)
        ASSERT_TRUE(weight.data[i] == 0 && state.data[i] == 0) << i;
    }
    EXPECT_EQ(zeros, (64u * 64 + 2) / 3);
  }
  expectResumes("a");
}

/// A checkpoint of a training without a mask.
TEST_F(MaskTest, AnUpdateMasksWhatWasLoaded) {
  mustCompile("plain", {"--optimizer", "sgd:lr=0.02"});
  mustCompile("masked",
              {"--optimizer", "sgd:lr=0.02", "--mask", writeMask("mask.npz", "0.weight", {64, 64})});
  train("plain", "plain.safetensors", 1);
  EXPECT_NE(valuesOf(loadValues(folder / "plain.safetensors"), "0.weight").data[0], 0);
  train("masked", "masked.safetensors", 1, {"--load", folder / "plain.safetensors"});
  EXPECT_EQ(valuesOf(loadValues(folder / "masked.safetensors"), "0.weight").data[0], 0);
}

/// Programs store filters with their channels last.
TEST_F(MaskTest, FiltersAreMaskedAsTheFileHasThem) {
  entry = ZooEntry("lenet");
  std::vector<std::string> arguments{"train",       entry.model(),
                                     "-o",          folder / "a",
                                     "--target",    "native",
                                     "--optimizer", "adamw:lr=0.02",
                                     "--mask",      writeMask("mask.npz", "3.weight", {12, 6, 5, 5}),
                                     "--quiet"};
  arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
  mustRun(arguments);
  for (int steps : {0, 2}) {
    train("a", "m.safetensors", steps);
    auto found = loadValues(folder / "m.safetensors");
    const Values &weight = valuesOf(found, "3.weight");
    ASSERT_EQ(weight.data.size(), 12u * 6 * 5 * 5);
    for (size_t i = 0; i < weight.data.size(); ++i)
      ASSERT_EQ(weight.data[i] == 0, i % 3 == 0) << i;
  }
}

TEST_F(UpdateTest, AveragesOfFiltersAreAsTheFileHasThem) {
  entry = ZooEntry("lenet");
  std::vector<std::string> arguments{"train",       entry.model(),  "-o",     folder / "a",
                                     "--target",    "native",       "--ema",  "decay=0.75",
                                     "--optimizer", "sgd:lr=0.125", "--quiet"};
  arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
  mustRun(arguments);
  train("a", "first.safetensors", 1);
  train("a", "second.safetensors", 2);
  auto first = loadValues(folder / "first.safetensors"), second = loadValues(folder / "second.safetensors");
  const Values &before = valuesOf(first, "3.weight"), &after = valuesOf(second, "3.weight");
  EXPECT_EQ(valuesOf(first, "3.weight.ema").data, before.data);
  ASSERT_EQ(after.data.size(), 12u * 6 * 5 * 5);
  for (size_t i = 0; i < after.data.size(); ++i)
    ASSERT_NEAR(valuesOf(second, "3.weight.ema").data[i], 0.75 * before.data[i] + 0.25 * after.data[i], 1e-7)
        << i;
}

TEST_F(MaskTest, MasksThatDoNotFitAreRefused) {
  expectRefused({"--mask", writeMask("other.npz", "0.wight", {64, 64})},
                "--mask: '0.wight' is the name of no trained tensor; closest: '0.weight'");
  expectRefused({"--mask", writeMask("shape.npz", "0.weight", {32, 64})},
                "--mask: '0.weight' has shape [32, 64], but the parameter has [64, 64]");
  expectRefused({"--mask", writeMask("half.npz", "0.weight", {64, 64}, 0.5f)},
                "half.npz: '0.weight' has 0.5 as its element 1, and a mask has only zeros and ones");
  expectRefused({"--mask", folder / "none.npz"}, "none.npz");
}

} // namespace
