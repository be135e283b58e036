// Training loop, evaluation, prediction and gradients on the runtime's small test artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>

#include "engine/session/position.h"
#include "support/Text.h"
#include "test/engine/loop_fixture.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

TEST_F(LoopTest, ResumedRunGivesTheBitsOfAnUninterruptedOne) {
  // 7 steps end in the middle of the second epoch.
  TrainOptions whole = makeTrain(14), first = makeTrain(7), second = makeTrain(7);
  Schedule schedule;
  expectOk(Schedule::parse("cosine:warmup=2,total=14", schedule));
  whole.schedule = first.schedule = schedule;
  whole.seed = first.seed = 3;
  whole.lr = first.lr = 0.3;
  whole.metrics = folder / "whole.jsonl";
  first.metrics = second.metrics = folder / "parts.jsonl";
  whole.save = folder / "whole.safetensors";
  first.save = second.load = folder / "half.safetensors";
  second.save = folder / "parts.safetensors";
  expectOk(train(whole, interrupted));
  expectOk(train(first, interrupted));
  expectOk(train(second, interrupted));
  EXPECT_EQ(readFile(second.save), readFile(whole.save));
  std::vector<Json> steps = readSteps(whole.metrics);
  EXPECT_EQ(steps.size(), 14u);
  EXPECT_EQ(readSteps(first.metrics), steps);
}

// An artifact whose manifest says nothing of its kernels gives their names and times; evaluation is no part of a step.
TEST_F(LoopTest, ProfilesTheKernelsOfTrainingSteps) {
  TrainOptions options = makeTrain(12), alike = makeTrain(12);
  options.profile = true;
  options.evalData = dataPath;
  options.metrics = folder / "profile.jsonl";
  options.save = folder / "profile.safetensors";
  alike.save = folder / "alike.safetensors";
  testing::internal::CaptureStdout();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStdout();
  expectOk(train(alike, interrupted));
  EXPECT_EQ(readFile(options.save), readFile(alike.save));
  EXPECT_NE(text.find("profile of 11 steps (1 step of warm-up left out), 1 thread"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  forward\n"), std::string::npos) << text;
  std::istringstream lines(readFile(options.metrics));
  Json last;
  for (std::string line; std::getline(lines, line);)
    last = Json::parse(line);
  ASSERT_EQ(last["event"], "profile");
  ASSERT_EQ(last["kernels"].size(), 1u);
  EXPECT_EQ(last["kernels"][0]["name"], "forward");
  EXPECT_EQ(last["kernels"][0]["calls"], 1);
  EXPECT_FALSE(last["kernels"][0].contains("bound_ms"));
}

TEST_F(LoopTest, AScheduleWithoutATotalEndsWhereItsRunEnds) {
  TrainOptions first = makeTrain(4), second = makeTrain(4);
  Schedule schedule;
  expectOk(Schedule::parse("linear", schedule));
  first.schedule = schedule;
  first.lr = 0.8;
  first.save = second.load = folder / "first.safetensors";
  second.metrics = folder / "second.jsonl";
  expectOk(train(first, interrupted));
  expectOk(train(second, interrupted));
  std::vector<double> rates;
  for (const Json &step : readSteps(second.metrics))
    rates.push_back(step["lr"]);
  ASSERT_EQ(rates.size(), 4u); // steps 4 to 7 of 8
  for (int k = 0; k < 4; ++k)
    EXPECT_NEAR(rates[size_t(k)], 0.8 * (1 - (4 + k) / 8.0), 1e-6) << k; // rates are float32
}

TEST_F(LoopTest, RefusesToGoOnPastTheEndOfAFallingSchedule) {
  TrainOptions first = makeTrain(6), second = makeTrain(3);
  Schedule schedule;
  expectOk(Schedule::parse("cosine:min=0.01,total=6", schedule));
  first.schedule = schedule;
  first.save = second.load = folder / "first.safetensors";
  expectOk(train(first, interrupted));
  Status status = train(second, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(),
            second.load +
                ": the learning-rate schedule cosine:warmup=0,min=0.01,total=6 ends at step 6, and this run "
                "begins at step 6; give --lr-schedule with total=9 or more, or --lr for a constant rate");
  second.steps = 0;
  expectOk(train(second, interrupted)); // nothing would train at the wrong rate
  second.steps = 3;
  second.schedule = schedule; // asked for: the rest trains at the minimum
  expectOk(train(second, interrupted));
  expectOk(Schedule::parse("cosine:total=6", *second.schedule));
  EXPECT_EQ(train(second, interrupted).getCode(), ExitCode::Refused);
  second.schedule.reset();
  second.lr = 0.1;
  second.metrics = folder / "constant.jsonl";
  expectOk(train(second, interrupted));
  EXPECT_NEAR(double(readSteps(second.metrics).back()["lr"]), 0.1, 1e-6);
}

TEST_F(LoopTest, RefusesAScheduleThatEndsAboveItsRate) {
  TrainOptions options = makeTrain(6);
  options.schedule.emplace();
  expectOk(Schedule::parse("cosine:min=0.5", *options.schedule)); // the artifact's rate is 0.25
  options.metrics = folder / "refused.jsonl";
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("min 0.5 must be at most the learning rate of 0.25"), std::string::npos)
      << status.getMessage();
  EXPECT_FALSE(std::filesystem::exists(options.metrics));
  options.lr = 0.5;
  expectOk(train(options, interrupted));
}

TEST_F(LoopTest, EveryNumberOfThreadsGivesTheSameBits) {
  std::string wanted;
  for (uint32_t threads : {1u, 2u, 4u}) {
    TrainOptions options = makeTrain(12);
    options.threads = threads;
    options.save = folder / "threads.safetensors";
    expectOk(train(options, interrupted));
    std::string got = readFile(options.save);
    EXPECT_TRUE(wanted.empty() || got == wanted) << threads;
    wanted = got;
  }
}

TEST_F(LoopTest, RefusesMoreThreadsThanCompiledFor) {
  TrainOptions options = makeTrain(1);
  options.threads = 5;
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(),
            "--threads 5: the artifact was compiled for at most 4; compile it with --max-workers 5");
}

TEST_F(LoopTest, WritesMetricsAsDocumented) {
  TrainOptions options = makeTrain(6);
  options.metrics = folder / "metrics.jsonl";
  options.evalData = dataPath;
  options.shuffle = false;
  expectOk(train(options, interrupted));
  std::istringstream lines(readFile(options.metrics));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, line.find("loss")), "{\"step\":1,\"epoch\":0,\"");
  EXPECT_NE(line.find("\"lr\":0.25,\"ms\":"), std::string::npos) << line;
  int evaluations = 0;
  for (; std::getline(lines, line);) {
    Json parsed = Json::parse(line);
    EXPECT_NE(parsed.contains("event"), parsed.contains("loss")) << line;
    if (parsed.contains("event")) {
      ++evaluations;
      EXPECT_EQ(parsed["event"], "eval");
      EXPECT_TRUE(parsed.contains("eval_loss") && parsed.contains("accuracy")) << line;
    }
  }
  EXPECT_EQ(evaluations, 2); // after the first epoch of 5 steps, and at the end
}

TEST_F(LoopTest, AnInterruptedRunSavesAndEndsWell) {
  TrainOptions options = makeTrain(1000);
  options.save = folder / "interrupted.safetensors";
  interrupted = 1;
  expectOk(train(options, interrupted));
  interrupted = 0;
  TrainOptions rest = makeTrain(2);
  rest.load = options.save;
  rest.metrics = folder / "rest.jsonl";
  expectOk(train(rest, interrupted));
  EXPECT_EQ(readSteps(rest.metrics).front()["step"], 1);
}

TEST_F(LoopTest, SavesEverySoManySteps) {
  TrainOptions options = makeTrain(5);
  options.save = folder / "every.safetensors";
  options.saveEvery = 2;
  options.metrics = folder / "every.jsonl";
  expectOk(train(options, interrupted));
  std::vector<int> saved;
  std::istringstream lines(readFile(options.metrics));
  for (std::string line; std::getline(lines, line);)
    if (Json parsed = Json::parse(line); parsed.contains("event"))
      saved.push_back(parsed["step"]);
  EXPECT_EQ(saved, (std::vector<int>{2, 4, 5}));
}

TEST_F(LoopTest, StopsAtALossThatIsNotFinite) {
  TrainOptions options = makeTrain(5);
  options.data = writeData("nan.npz", 8, NAN);
  options.shuffle = false;
  options.stopOnNan = true;
  options.save = folder / "nan.safetensors";
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_EQ(
      status.getMessage(),
      "the loss is not finite (step 1, epoch 0, slice 0 of " + options.data +
          "); the input 'x' is nan in the data: sample 0 of " + options.data +
          ", element 0 of its 'x', at byte 163: leave such samples out, or repair them; no parameter was "
          "changed by this step, nothing was saved");
  EXPECT_FALSE(std::filesystem::exists(options.save));
}

/// The loss before an update says nothing of it.
TEST_F(LoopTest, StopsAtAnUpdateThatIsNotFinite) {
  TrainOptions options = makeTrain(5);
  options.data = writeData("large.npz", 8, 1000); // whose gradients are above 1
  options.shuffle = false;
  options.lr = 3.4e38;
  options.stopOnNan = true;
  options.saveEvery = 1;
  options.save = folder / "inf.safetensors";
  options.metrics = folder / "inf.jsonl";
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  const std::string message = status.getMessage();
  EXPECT_TRUE(message.starts_with("the weights are not finite after the update of step ")) << message;
  EXPECT_NE(message.find(" of " + options.data + "): 'fc.weight' has "), std::string::npos) << message;
  EXPECT_NE(message.find("try a smaller --lr; "), std::string::npos) << message;
  std::vector<Json> events = readEvents(options.metrics, "not_finite");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["tensor"], "fc.weight");
  const auto step = events[0]["step"].get<int64_t>();
  EXPECT_TRUE(message.ends_with(step > 1 ? options.save + " holds step " + std::to_string(step - 1)
                                         : "nothing was saved"))
      << message;
}

/// A checkpoint that is there is worth more than one of no use.
TEST_F(LoopTest, DoesNotSaveWhatIsNotFinite) {
  TrainOptions options = makeTrain(3);
  options.save = folder / "a.safetensors";
  options.lr = 0.1;
  expectOk(train(options, interrupted));
  const std::string before = readFile(options.save);
  TrainOptions rest = makeTrain(60);
  rest.load = rest.save = options.save;
  rest.lr = 1e3; // grows tenfold and more a step
  Status status = train(rest, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_TRUE(
      status.getMessage().starts_with(options.save + ": step 63 is not saved: 'fc.weight' has 6 nan among"))
      << status.getMessage();
  EXPECT_NE(status.getMessage().find("; the numbers grew: "), std::string::npos) << status.getMessage();
  EXPECT_EQ(readFile(options.save), before);
}

TEST_F(LoopTest, NamesTheLabelThatIsOutOfRange) {
  TrainOptions options = makeTrain(5);
  options.data = writeData("range.npz", 8, 0.5f, 7);
  options.shuffle = false;
  Status status = train(options, interrupted);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_NE(status.getMessage().find("label"), std::string::npos) << status.getMessage();
  EXPECT_NE(status.getMessage().find(" (step 1, epoch 0, slice 0 of " + options.data + ")"),
            std::string::npos)
      << status.getMessage();
}

TEST_F(LoopTest, EvaluationNamesTheFileWithTheLabelThatIsOutOfRange) {
  ApplyOptions options = makeApply("");
  options.data = writeData("range.npz", 8, 0.5f, 7);
  Status status = evaluateData(options);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_NE(status.getMessage().find(" (slice 0 of " + options.data + ")"), std::string::npos)
      << status.getMessage();
}

TEST_F(LoopTest, TheLossOfALineIsThatOfItsStep) {
  TrainOptions options = makeTrain(40);
  options.quiet = false;
  options.metrics = folder / "metrics.jsonl";
  testing::internal::CaptureStdout();
  expectOk(train(options, interrupted));
  std::string text = testing::internal::GetCapturedStdout();
  double loss = readSteps(options.metrics).back()["loss"];
  size_t line = text.find("step 40/40 "), at = text.find("loss ", line);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NEAR(std::stod(text.substr(at + 5)), loss, 1e-3 * loss) << text;
}

TEST_F(LoopTest, RefusesAFolderThatIsNotThereBeforeTraining) {
  TrainOptions options = makeTrain(5);
  options.save = "/no/such/folder/a.safetensors";
  EXPECT_EQ(train(options, interrupted).getMessage(),
            "/no/such/folder/a.safetensors: the folder /no/such/folder is not there or cannot be written");
}

TEST_F(LoopTest, BeginsTheNextEpochOnOtherData) {
  TrainOptions options = makeTrain(7), rest = makeTrain(1);
  options.save = rest.load = folder / "a.safetensors";
  expectOk(train(options, interrupted));
  rest.data = writeData("other.npz", 8);
  rest.metrics = folder / "other.jsonl";
  expectOk(train(rest, interrupted));
  EXPECT_EQ(readSteps(rest.metrics).front()["epoch"], 2);
}

TEST_F(LoopTest, TheFirstMomentumIsTheGradientOfTheGradientsCommand) {
  TrainOptions options = makeTrain(1);
  options.shuffle = false;
  options.save = folder / "one.safetensors";
  expectOk(train(options, interrupted));
  ApplyOptions apply = makeApply("gradients.safetensors");
  expectOk(computeGradients(apply));
  auto gradients = readArrays(apply.output), saved = readArrays(options.save);
  EXPECT_EQ(gradients["fc.weight"], saved["fc.weight.momentum"]);
  EXPECT_EQ(gradients.count("loss"), 1u);
}

TEST_F(LoopTest, PredictsEverySampleOnceInAnyBinding) {
  ApplyOptions batch = makeApply("batch.npz"), single = makeApply("single.npz"), some = makeApply("some.npz");
  single.binding = "single";
  some.steps = 1;
  expectOk(predictData(batch));
  expectOk(predictData(single));
  expectOk(predictData(some));
  std::string all = readArrays(batch.output)["y"];
  EXPECT_EQ(all.substr(0, 7), "[22, 2]");
  EXPECT_EQ(readArrays(single.output)["y"], all);
  EXPECT_EQ(readArrays(some.output)["y"], "[4, 2]" + all.substr(7, 32));
}

TEST_F(LoopTest, EvaluatesTheSameInEveryBinding) {
  auto evaluate = [&](const std::string &binding, const std::string &data) {
    ApplyOptions options = makeApply("");
    options.data = data;
    options.binding = binding;
    testing::internal::CaptureStdout();
    expectOk(evaluateData(options));
    return testing::internal::GetCapturedStdout();
  };
  std::string even = writeData("even.npz", 8);
  std::string text = evaluate("batch", even);
  EXPECT_NE(text.find(", accuracy "), std::string::npos) << text;
  EXPECT_NE(text.find("of 8), over 8 samples\n"), std::string::npos) << text;
  std::string alone = evaluate("single", even);
  EXPECT_EQ(alone.substr(alone.find(", accuracy")), text.substr(text.find(", accuracy")));
  text = evaluate("batch", dataPath); // the accuracy counts no repeated sample
  alone = evaluate("single", dataPath);
  EXPECT_EQ(alone.substr(alone.find(", accuracy")), text.substr(text.find(", accuracy")));
  EXPECT_NE(text.find("of 22), over 22 samples\n"), std::string::npos) << text;
}

TEST_F(LoopTest, NeverWritesOverItsInputs) {
  std::string data = readFile(dataPath), model = readFile(artifactPath);
  TrainOptions first = makeTrain(3);
  first.save = folder / "ck.safetensors";
  expectOk(train(first, interrupted));
  std::string checkpoint = readFile(first.save);
  auto expectRefused = [&](const Status &status, const std::string &message) {
    EXPECT_EQ(status.getCode(), ExitCode::Refused);
    EXPECT_EQ(status.getMessage(), message + "; name another file");
    EXPECT_EQ(readFile(dataPath), data);
    EXPECT_EQ(readFile(artifactPath), model);
    EXPECT_EQ(readFile(first.save), checkpoint);
  };
  TrainOptions options = makeTrain(3);
  options.metrics = dataPath;
  expectRefused(train(options, interrupted), "--metrics " + dataPath + " would overwrite --data " + dataPath);
  options.metrics = options.load = first.save;
  expectRefused(train(options, interrupted),
                "--metrics " + first.save + " would overwrite --load " + first.save);
  options.metrics = "";
  options.save = artifactPath;
  expectRefused(train(options, interrupted),
                "--save " + artifactPath + " would overwrite the artifact " + artifactPath);
  options.evalData = options.save = writeData("eval.npz", 8);
  expectRefused(train(options, interrupted),
                "--save " + options.save + " would overwrite --eval-data " + options.save);
  ApplyOptions apply = makeApply("data.npz");
  expectRefused(predictData(apply), "-o " + dataPath + " would overwrite --data " + dataPath);
  apply.output = apply.load = first.save;
  expectRefused(computeGradients(apply), "-o " + first.save + " would overwrite --load " + first.save);
  options = makeTrain(3);
  options.load = options.save = first.save; // goes on in the same file
  expectOk(train(options, interrupted));
  EXPECT_NE(readFile(first.save), checkpoint);
}

TEST_F(LoopTest, ALinkToACheckpointStaysALink) {
  TrainOptions options = makeTrain(1);
  options.save = folder / "link.safetensors";
  std::filesystem::create_symlink("ck.safetensors", options.save);
  expectOk(train(options, interrupted));
  EXPECT_TRUE(std::filesystem::is_symlink(options.save));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "ck.safetensors"));
}

TEST_F(LoopTest, MetricsOnAFullDiskAreWholeLines) {
  TrainOptions options = makeTrain(20);
  options.metrics = folder / "metrics.jsonl";
  rlimit before{}, limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = {500, before.rlim_max};
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Status status = train(options, interrupted);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_EQ(status.getMessage(), options.metrics + ": cannot be written: File too large");
  EXPECT_GE(readSteps(options.metrics).size(), 3u);
  EXPECT_EQ(readFile(options.metrics).back(), '\n');
}

/// The runtime has no memory for the names of tensors that nobody knows; this reader has.
TEST_F(LoopTest, RefusesCheckpointsWithKeysThatAreThereTwice) {
  TrainOptions first = makeTrain(1), second = makeTrain(1);
  first.save = folder / "good.safetensors";
  expectOk(train(first, interrupted));
  std::string good = readFile(first.save), key = "\"run.epoch\":\"0\"";
  size_t at = good.find(key);
  ASSERT_NE(at, std::string::npos);
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, good.data(), 8);
  std::string bad = good;
  bad.insert(at, key + ",");
  headerBytes += key.size() + 1;
  std::memcpy(bad.data(), &headerBytes, 8);
  second.load = folder.write("bad.safetensors", bad);
  EXPECT_EQ(train(second, interrupted).getMessage(),
            second.load + ": has the key 'run.epoch' twice in its header");
}

TEST_F(LoopTest, RefusesMoreStepsThanATrainingCanHave) {
  TrainOptions options = makeTrain(INT64_MAX);
  EXPECT_EQ(train(options, interrupted).getMessage(),
            "--steps 9223372036854775807 are too many; there are at most 9007199254740992");
  options.steps.reset();
  for (int64_t epochs : {INT64_MAX, kMostSteps / 5 + 1}) {
    options.epochs = epochs;
    EXPECT_EQ(train(options, interrupted).getMessage(), "--epochs " + std::to_string(epochs) +
                                                            " of 5 steps are too many; there are at most "
                                                            "9007199254740992");
  }
}

TEST_F(LoopTest, ARefusedRunLeavesTheMetricsOfAnEarlierOne) {
  TrainOptions options = makeTrain(INT64_MAX);
  options.metrics = folder / "metrics.jsonl";
  std::ofstream(options.metrics) << "{}\n";
  EXPECT_FALSE(train(options, interrupted).isOk());
  EXPECT_EQ(readFile(options.metrics), "{}\n");
}

/// What is large is not read to its end; nothing was trained, so nothing is saved.
TEST_F(LoopTest, AnInterruptEndsTheReadingOfLargeData) {
  TrainOptions options = makeTrain(1);
  std::string ones(96 << 20, '\1');
  options.data = folder.write(
      "large.npz", zip({{"x.npy", npyOf("<f4", "(" + std::to_string(ones.size() / 12) + ", 3)", ones), 8},
                        {"label.npy", npyOf("<i8", "(1,)", std::string(8, '\0'))}}));
  options.save = folder / "saved.safetensors";
  interrupted = SIGINT;
  auto begin = std::chrono::steady_clock::now();
  expectOk(train(options, interrupted));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(options.save));
  interrupted = 0;
  EXPECT_NE(train(options, interrupted).getMessage(), "") << "8 M samples, one label";
}

/// Checkpoints that no training has saved.
TEST_F(LoopTest, RefusesCheckpointsThatNoTrainingHasSaved) {
  TrainOptions first = makeTrain(3), second = makeTrain(1);
  first.save = folder / "good.safetensors";
  second.load = folder / "bad.safetensors";
  expectOk(train(first, interrupted));
  auto refuse = [&](const std::string &changed, const auto &value, const std::string &slice,
                    const std::string &rate = "0.25") {
    std::unique_ptr<DataSource> source;
    expectOk(openData(first.save, source));
    std::vector<OutputArray> arrays;
    for (const std::string &name : source->getNames()) {
      Array array;
      expectOk(source->load(name, array));
      arrays.push_back({name, array.type, array.shape, {array.data, array.data + array.bytes}});
      if (name == changed)
        std::memcpy(arrays.back().data.data(), &value, sizeof(value));
    }
    Position position;
    position.items = 22;
    position.lr = 0.25;
    auto metadata = formatPosition(position);
    metadata["run.slice"] = slice;
    metadata["run.lr"] = rate;
    expectOk(writeSafetensors(second.load, arrays, metadata));
    return train(second, interrupted).getMessage();
  };
  EXPECT_EQ(refuse("", 0, "5"), "");
  for (int64_t step : {int64_t(-5), kMostSteps + 2, INT64_MAX})
    EXPECT_EQ(refuse("step", step, "0"), second.load + ": 'step' is " + formatNumber(double(step)) +
                                             ", but it must be from 0 to 9007199254740992; no training has "
                                             "saved this");
  for (float rate : {NAN, INFINITY, -3.0f})
    EXPECT_EQ(refuse("lr", rate, "0"),
              second.load + ": 'lr' is " + formatNumber(rate) +
                  ", but it must be a number from 0 to 3.4e38; no training has saved this");
  for (const char *rate : {"1e300", "-1", "nan", "inf", "fast"})
    EXPECT_EQ(refuse("", 0, "0", rate),
              second.load + ": its metadata has 'run.lr' = '" + rate + "', which is no position");
  EXPECT_EQ(refuse("", 0, "23"),
            second.load +
                ": its metadata has 'run.slice' = '23', which is no position in 'run.items' = '22'");
  second.quiet = false;
  testing::internal::CaptureStderr();
  EXPECT_EQ(refuse("", 0, "11"), ""); // of another batch size, perhaps
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "an epoch has 5 steps but the checkpoint was made after 11 of "
                "one: the next epoch begins"),
            std::string::npos);
}

TEST_F(LoopTest, GradientsCountEverySampleOnce) {
  ApplyOptions options = makeApply("gradients.safetensors");
  options.data = writeData("short.npz", 3);
  Status status = computeGradients(options);
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_EQ(status.getMessage(),
            options.data + ": has 3 samples but a batch takes 4; compile with a smaller batch (--shape)");
  EXPECT_FALSE(std::filesystem::exists(options.output));
  options.data = writeData("rest.npz", 6);
  expectOk(computeGradients(options));
  std::string one = readFile(options.output);
  options.steps = 2;
  options.quiet = false;
  testing::internal::CaptureStderr();
  expectOk(computeGradients(options));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ortc: note: " + options.data +
                ": has 1 slice, fewer than --steps 2\nortc: note: " + options.data +
                ": 2 samples of 6 at the end of the data do not fill a batch of 4 and are dropped\n");
  EXPECT_EQ(readFile(options.output), one);
}

TEST_F(LoopTest, EvaluationReportsPredictionsThatAreNotNumbers) {
  ApplyOptions options = makeApply("");
  options.data = writeData("nan.npz", 8, NAN);
  testing::internal::CaptureStdout();
  expectOk(evaluateData(options));
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.find("loss nan, accuracy "), 0u) << text;
  EXPECT_NE(text.find(" of 8; 1 prediction is NaN and counted as wrong), over 8 samples\n"),
            std::string::npos)
      << text;
}

/// In one line on stderr: what is printed as JSON stays JSON.
TEST_F(LoopTest, SaysThatTheLastSliceWasFilled) {
  const std::string note =
      "ortc: note: " + dataPath +
      ": the last slice has 2 samples and is filled to 4 by repeating them, which changes results where the "
      "model lets samples depend on each other";
  ApplyOptions options = makeApply("y.npz");
  options.json = true;
  auto evaluate = [&] {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    expectOk(evaluateData(options));
    Json result = Json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(result["samples"], options.steps ? 20 : 22);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(evaluate(), "");
  options.quiet = false;
  EXPECT_EQ(evaluate(), note + "\n");
  options.steps = 5;
  EXPECT_EQ(evaluate(), "");
  options.steps.reset();
  testing::internal::CaptureStderr();
  expectOk(predictData(options));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), note + "\n");
}

/// Without a formula of the loss: what repeated rows add comes from steps that repeat fewer.
TEST_F(LoopTest, EvaluationCountsEverySampleOnce) {
  auto evaluate = [&](const std::string &binding, const std::string &data) {
    ApplyOptions options = makeApply("");
    options.binding = binding;
    options.data = data;
    options.json = true;
    testing::internal::CaptureStdout();
    expectOk(evaluateData(options));
    return Json::parse(testing::internal::GetCapturedStdout())["loss"].get<double>();
  };
  for (int64_t samples : {1, 2, 3, 5, 6, 7}) {
    std::string data = writeData("short.npz", samples);
    double one = evaluate("single", data);
    EXPECT_NEAR(evaluate("batch", data), one, 1e-6 * one) << samples << " samples";
  }
}

TEST_F(LoopTest, RefusesWhatTheArtifactDoesNotHave) {
  TrainOptions options = makeTrain(1);
  options.binding = "single";
  EXPECT_EQ(train(options, interrupted).getMessage(),
            artifactPath + ": has no train entry in binding 'single'; compile it again");
  options.binding = "double";
  EXPECT_EQ(train(options, interrupted).getMessage(),
            artifactPath + ": has no binding 'double'; it has 'batch', 'single'");
  TemporaryFolder empty;
  options.artifact = empty / "";
  EXPECT_EQ(train(options, interrupted).getMessage(), options.artifact +
                                                          ": holds no artifact (no model.ortc); make one "
                                                          "with ortc train MODEL.onnx -o " +
                                                          options.artifact);
}
