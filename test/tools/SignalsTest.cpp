// Work is not lost: the tool under real signals, limits and kills, and what it says at the end of a run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/data/writers.h"
#include "test/engine/data_files.h"
#include "test/runtime/TestArtifact.h"
#include "test/tools/Process.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;
using ortc::test::Arguments;
using ortc::test::Ended;
using ortc::test::Process;
using ortc::test::waitFor;

namespace {

using Json = nlohmann::json;

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGXCPU, SIGUSR1, SIGUSR2};
constexpr const char *kModel = ORTC_TEST_DATA "/zoo/mlp-digits/model.onnx";

class SignalsTest : public testing::Test {
protected:
  SignalsTest() {
    artifact = inputs / "model.ortc";
    ortc::test::writeTestArtifact(artifact);
    data = writeData("data.npz", 0.5f);
  }
  /// 12 samples, three batches; `first` is one of their values.
  std::string writeData(const std::string &name, float first) {
    std::vector<float> x(36);
    std::vector<int64_t> labels(12);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i * 7 % 11) / 8 - 0.5f;
    x[0] = first;
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = i % 3 == 0;
    auto bytesOf = [](const auto &values) {
      auto from = reinterpret_cast<const uint8_t *>(values.data());
      return std::vector<uint8_t>(from, from + values.size() * sizeof(values[0]));
    };
    EXPECT_TRUE(writeNpz(inputs / name, {{"x", DataType::Float32, {12, 3}, bytesOf(x)},
                                         {"label", DataType::Int64, {12}, bytesOf(labels)}})
                    .isOk());
    return inputs / name;
  }
  Arguments runFor(const std::string &steps, const Arguments &more = {}) const {
    Arguments arguments{"run", artifact,  "--data", data,     "--threads",
                        "1",   "--steps", steps,    "--save", saved()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string saved() const { return outputs / "saved.safetensors"; }
  std::string metrics() const { return outputs / "metrics.jsonl"; }
  Ended end(const Arguments &arguments, const std::function<void()> &prepare = {}) const {
    return Process(ORTC_TOOL, arguments, prepare).wait();
  }
  /// The checkpoint is whole.
  void expectSaved() const {
    Ended loaded = end({"eval", artifact, "--data", data, "--load", saved(), "--quiet"});
    EXPECT_EQ(loaded.status, 0) << loaded.text;
  }
  std::set<std::string> list() const {
    std::set<std::string> names;
    for (const auto &item : std::filesystem::recursive_directory_iterator(outputs / ""))
      names.insert(std::filesystem::relative(item.path(), outputs / "").string());
    return names;
  }
  /// Waits until some steps are done.
  void waitForSteps(size_t bytes = 200) const {
    EXPECT_TRUE(waitFor([&] { return readFile(metrics()).size() > bytes; }));
  }

  TemporaryFolder inputs, outputs;
  std::string artifact, data;
};

void limitFiles(rlim_t bytes) {
  rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

} // namespace

TEST_F(SignalsTest, EverySignalSavesARun) {
  for (int signal : kSignals) {
    Process run(ORTC_TOOL, runFor("1000000000", {"--metrics", metrics()}));
    waitForSteps();
    run.send(signal);
    Ended ended = run.wait();
    EXPECT_FALSE(ended.isKilled) << strsignal(signal);
    EXPECT_EQ(ended.status, 128 + signal) << ended.text;
    EXPECT_EQ(list(), (std::set<std::string>{"saved.safetensors", "metrics.jsonl"})) << strsignal(signal);
    expectSaved();
    std::string told = readFile(metrics());
    EXPECT_NE(told.find("{\"event\":\"interrupted\",\"step\":"), std::string::npos);
    std::filesystem::remove(saved());
    std::filesystem::remove(metrics());
  }
}

// From the first system call of the program to its last: whatever it is doing, its status says so, and
// nothing half-made stays.
TEST_F(SignalsTest, ARunIsSavedWheneverTheSignalComes) {
  int stopped = 0;
  for (int call = 0;; call += call < 40 ? 1 : 7) {
    Process run(ORTC_TOOL, runFor("3", {"--metrics", metrics()}), Process::traceMe);
    if (!run.sendAtCall(SIGHUP, call))
      break;
    Ended ended = run.wait();
    if (ended.isKilled) { // by the loader, before there is a program
      EXPECT_EQ(stopped, 0) << call;
      EXPECT_EQ(list(), std::set<std::string>{}) << call;
      continue;
    }
    stopped += ended.status == 128 + SIGHUP;
    EXPECT_TRUE(ended.status == 128 + SIGHUP || ended.status == 0) << call << ": " << ended.text;
    EXPECT_EQ(list(), (std::set<std::string>{"saved.safetensors", "metrics.jsonl"})) << call;
    expectSaved();
    std::filesystem::remove(saved());
    std::filesystem::remove(metrics());
  }
  EXPECT_GT(stopped, 10);
}

TEST_F(SignalsTest, WhatIsHalfMadeIsRemovedWheneverTheSignalComes) {
  struct Case {
    Arguments arguments;
    std::set<std::string> files;
    int least, stride; ///< the first calls load libraries
  };
  const Case cases[] = {
      {{"predict", artifact, "--data", data, "-o", outputs / "y.npz", "--threads", "1"}, {"y.npz"}, 40, 3},
      {{"plan", kModel, "--shape", "batch=4", "--quiet", "--report", outputs / "r.json"}, {"r.json"}, 60, 23},
      {{"train", kModel, "--shape", "batch=4", "--target", "x86-64", "--quiet", "-o", outputs / "a/b",
        "--report", outputs / "r.json"},
       {"a", "a/b", "a/b/model.ortc", "a/b/manifest.json", "r.json"},
       60,
       31}};
  for (const Case &test : cases) {
    int stopped = 0;
    for (int call = test.least;; call += test.stride) {
      Process tool(ORTC_TOOL, test.arguments, Process::traceMe);
      bool isSent = tool.sendAtCall(SIGTERM, call);
      Ended ended = tool.wait();
      EXPECT_TRUE(ended.status == 128 + SIGTERM || ended.status == 0) << ended.status << ended.text;
      stopped += ended.status == 128 + SIGTERM && !ended.isKilled;
      for (const std::string &name : list())
        EXPECT_TRUE(test.files.count(name)) << test.arguments[0] << " has left " << name << " at " << call;
      if (std::filesystem::exists(outputs / "a"))
        EXPECT_TRUE(std::filesystem::exists(outputs / "a/b/model.ortc")) << "a folder with nothing in it";
      for (const auto &item : std::filesystem::directory_iterator(outputs / ""))
        std::filesystem::remove_all(item.path());
      if (!isSent)
        break;
    }
    EXPECT_GT(stopped, 5) << test.arguments[0];
  }
}

// What SIGKILL leaves is removed by the next that writes to the place, and no later.
TEST_F(SignalsTest, WhatAKilledRunLeavesTheNextRemoves) {
  size_t most = 0;
  ASSERT_EQ(end(runFor("1", {"--quiet"})).status, 0);
  for (int call = 60;; call += 2) {
    Process run(ORTC_TOOL, runFor("3"), Process::traceMe);
    if (!run.sendAtCall(SIGKILL, call))
      break;
    EXPECT_TRUE(run.wait().isKilled);
    size_t files = list().size();
    most = std::max(most, files);
    EXPECT_LE(files, 2u) << "remnants are collected at " << call;
  }
  EXPECT_EQ(most, 2u) << "no kill came while it saved";
  EXPECT_EQ(end(runFor("1", {"--quiet"})).status, 0);
  EXPECT_EQ(list(), std::set<std::string>{"saved.safetensors"});
  expectSaved();
}

TEST_F(SignalsTest, TwoRunsSaveToOnePlace) {
  Arguments often{"--save-every", "1", "--quiet"};
  Process one(ORTC_TOOL, runFor("300", often)), other(ORTC_TOOL, runFor("300", often));
  Ended first = one.wait(), second = other.wait();
  EXPECT_EQ(first.status, 0) << first.text;
  EXPECT_EQ(second.status, 0) << second.text;
  EXPECT_EQ(list(), std::set<std::string>{"saved.safetensors"});
  expectSaved();
}

TEST_F(SignalsTest, IgnoredSignalsStayIgnored) {
  Process run(ORTC_TOOL, runFor("1000000000", {"--metrics", metrics()}), [] { signal(SIGHUP, SIG_IGN); });
  waitForSteps();
  run.send(SIGHUP);
  waitForSteps(readFile(metrics()).size() + 1000);
  EXPECT_FALSE(run.hasEnded());
  run.send(SIGTERM);
  EXPECT_EQ(run.wait().status, 128 + SIGTERM);
  expectSaved();
}

// Nobody reads the pipe, so the run waits for ever; a human presses Ctrl-C again.
TEST_F(SignalsTest, ASecondInterruptEndsAtOnce) {
  ASSERT_EQ(mkfifo(metrics().c_str(), 0600), 0);
  Process run(ORTC_TOOL, runFor("5", {"--metrics", metrics()}));
  EXPECT_TRUE(waitFor([&] {
    run.send(SIGINT);
    return run.hasEnded();
  }));
  EXPECT_EQ(run.wait().status, 128 + SIGINT);
  EXPECT_EQ(list(), std::set<std::string>{"metrics.jsonl"});
}

TEST_F(SignalsTest, APipeThatNobodyReadsSavesARun) {
  auto close = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)
      _exit(99);
    ::close(ends[0]);
    ::close(ends[1]);
  };
  Ended ended = end(runFor("10000000"), close); // lines come twenty times
  EXPECT_EQ(ended.status, 128 + SIGPIPE) << ended.text;
  EXPECT_FALSE(ended.isKilled);
  expectSaved();
  EXPECT_EQ(end({"ops"}, close).status, 128 + SIGPIPE);
  EXPECT_EQ(end({"predict", artifact, "--data", data, "-o", outputs / "y.npz"}, close).status, 128 + SIGPIPE);
  EXPECT_EQ(list(), (std::set<std::string>{"saved.safetensors", "y.npz"}));
  // Who is told to ignore it fails as with any output that cannot be written.
  Ended ignored = end({"ops"}, [&] {
    close();
    signal(SIGPIPE, SIG_IGN);
  });
  EXPECT_EQ(ignored.status, 1);
  EXPECT_EQ(ignored.text.find("ortc: error: standard output cannot be written"), 0u) << ignored.text;
}

TEST_F(SignalsTest, AFileThatIsTooLargeIsAFailureAndLeavesNothing) {
  Ended ended = end({"predict", artifact, "--data", data, "-o", outputs / "y.npz"}, [] { limitFiles(300); });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.text, "ortc: error: " + (outputs / "y.npz") + ": cannot be written: File too large\n");
  ended = end({"train", kModel, "--shape", "batch=4", "--target", "x86-64", "--quiet", "-o", outputs / "a"},
              [] { limitFiles(8192); });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.text,
            "ortc: error: " + (outputs / "a/model.ortc") + ": cannot be written: File too large\n");
  ended = end({"plan", kModel, "--shape", "batch=4", "--quiet", "--dump-buffers", outputs / "b.csv", "--html",
               outputs / "p.html"},
              [] { limitFiles(8192); });
  EXPECT_EQ(ended.status, 1) << ended.text;
  ended = end(runFor("3", {"--quiet"}), [] { limitFiles(300); });
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.text.find(saved() + ": cannot be written: File too large\n"), std::string::npos)
      << ended.text;
  EXPECT_EQ(list(), std::set<std::string>{});
}

// What fails beside the training does not take it along.
TEST_F(SignalsTest, ARunThatFailsIsSaved) {
  Ended ended = end(runFor("1000000000", {"--metrics", metrics(), "--quiet"}), [] { limitFiles(3000); });
  EXPECT_EQ(ended.status, 1);
  size_t lines = 0;
  std::istringstream text(readFile(metrics()));
  for (std::string line; std::getline(text, line); ++lines)
    EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(ended.text, "ortc: error: " + metrics() + ": cannot be written: File too large; " + saved() +
                            " holds step " + std::to_string(lines + 1) + "\n");
  expectSaved();
}

#ifdef ORTC_INTERRUPTING
TEST_F(SignalsTest, InterruptedCallsAreNoFailure) {
  auto interrupt = [] { setenv("LD_PRELOAD", ORTC_INTERRUPTING, 1); };
  const Arguments commands[] = {
      runFor("5", {"--save-every", "1", "--metrics", metrics()}),
      {"predict", artifact, "--data", data, "-o", outputs / "y.npz"},
      {"train", kModel, "--shape", "batch=4", "--target", "x86-64", "--quiet", "-o", outputs / "a"}};
  for (int round = 0; round < 2; ++round) // new files, and files that are replaced
    for (const Arguments &arguments : commands) {
      Ended ended = end(arguments, interrupt);
      EXPECT_EQ(ended.status, 0) << ended.text;
    }
  EXPECT_EQ(list(), (std::set<std::string>{"saved.safetensors", "metrics.jsonl", "y.npz", "a", "a/model.ortc",
                                           "a/manifest.json"}));
  EXPECT_EQ(end({"verify", outputs / "a", "--quiet"}).status, 0);
  expectSaved();
}

#endif

// A shell whose working directory is replaced stands in a folder that is no more.
TEST_F(SignalsTest, TheWorkingDirectoryStaysWhatItIs) {
  std::string folder = outputs / "here";
  std::filesystem::create_directory(folder);
  struct stat before{}, after{};
  ASSERT_EQ(stat(folder.c_str(), &before), 0);
  for (int round = 0; round < 2; ++round) {
    Ended ended = end({"train", kModel, "--shape", "batch=4", "--target", "x86-64", "--quiet", "-o", "."},
                      [&] { (void)!chdir(folder.c_str()); });
    EXPECT_EQ(ended.status, 0) << ended.text;
    ASSERT_EQ(stat(folder.c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    EXPECT_EQ(end({"verify", folder, "--quiet"}).status, 0);
  }
}

TEST_F(SignalsTest, ARunWithoutASaveSaysThatTheWeightsAreGone) {
  const std::string gone =
      "ortc: note: the trained weights are gone with this run; --save FILE.safetensors keeps them\n";
  Arguments plain{"run", artifact, "--data", data, "--steps", "3"};
  Ended ended = end(plain);
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text.substr(ended.text.size() - std::min(gone.size(), ended.text.size())), gone)
      << ended.text;
  EXPECT_EQ(end(runFor("3")).text.find("gone"), std::string::npos);
  plain.back() = "0";
  EXPECT_EQ(end(plain).text.find("gone"), std::string::npos) << "nothing was trained";
  plain.back() = "1000000000";
  plain.insert(plain.end(), {"--metrics", metrics()});
  Process run(ORTC_TOOL, plain);
  waitForSteps();
  run.send(SIGTERM);
  ended = run.wait();
  EXPECT_EQ(ended.status, 128 + SIGTERM);
  EXPECT_NE(ended.text.find(gone), std::string::npos) << ended.text;
}

TEST_F(SignalsTest, ALossThatIsNotFiniteIsSaidOnce) {
  // The value stands in the second batch, and then in every parameter.
  std::string bad = writeData("bad.npz", 0.5f);
  std::unique_ptr<DataSource> source;
  ASSERT_TRUE(openData(bad, source).isOk());
  std::vector<OutputArray> arrays;
  for (const std::string &name : source->getNames()) {
    Array array;
    ASSERT_TRUE(source->load(name, array).isOk());
    arrays.push_back({name, array.type, array.shape, {array.data, array.data + array.bytes}});
    float value = std::numeric_limits<float>::quiet_NaN();
    if (name == "x")
      std::memcpy(arrays.back().data.data() + 13 * sizeof(float), &value, sizeof(value));
  }
  bad = inputs / "nan.npz";
  ASSERT_TRUE(writeNpz(bad, arrays).isOk());
  Ended ended = end({"run", artifact, "--data", bad, "--no-shuffle", "--epochs", "2", "--threads", "1",
                     "--metrics", metrics()});
  EXPECT_EQ(ended.status, 0);
  Json step = Json::parse(readFile(metrics()).substr(0, readFile(metrics()).find('\n')));
  char loss[32];
  std::snprintf(loss, sizeof(loss), "%.5g", step["loss"].get<double>());
  std::string said =
      std::string("ortc: warning: the loss is nan in step 2 (epoch 0); the last finite one was ") + loss +
      " in step 1; ";
  size_t at = ended.text.find(said);
  ASSERT_NE(at, std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find("warning", at + said.size()), std::string::npos) << ended.text;
  EXPECT_NE(readFile(metrics()).find("{\"event\":\"not_finite\",\"step\":2}\n"), std::string::npos);
}

// Means of the losses that the metrics have; the bar itself is gone, and a pipe gets no such lines.
TEST_F(SignalsTest, ATerminalKeepsOneLineAnEpoch) {
  Arguments arguments{"run",       artifact, "--data",      data, "--steps",   "8",
                      "--threads", "1",      "--eval-data", data, "--metrics", metrics()};
  std::vector<std::string> lines = ortc::test::runOnTerminal(ORTC_TOOL, arguments);
  std::map<int, std::vector<double>> losses;
  std::map<int, std::string> evaluations;
  std::istringstream text(readFile(metrics()));
  for (std::string line; std::getline(text, line);) {
    Json item = Json::parse(line);
    char loss[32];
    if (item.contains("loss")) {
      losses[item["epoch"]].push_back(item["loss"]);
    } else if (item["event"] == "eval") {
      std::snprintf(loss, sizeof(loss), "%.5g", item["eval_loss"].get<double>());
      evaluations[item["epoch"]] = loss;
    }
  }
  ASSERT_EQ(losses.size(), 3u);
  for (const auto &[epoch, values] : losses) {
    double sum = 0;
    for (double value : values)
      sum += value;
    char mean[32];
    std::snprintf(mean, sizeof(mean), "%.5g", sum / double(values.size()));
    std::string begin = "epoch " + std::to_string(epoch) + ": " + (epoch == 2 ? "2 of 3 steps, " : "") +
                        "mean loss " + mean + ", eval loss " + evaluations[epoch] + ", accuracy ";
    int found = 0;
    for (const std::string &line : lines)
      if (line.compare(0, begin.size(), begin) == 0) {
        ++found;
        EXPECT_EQ(line.substr(line.size() - 2), " s") << line;
      }
    std::string all;
    for (const std::string &line : lines)
      all += line + "\n";
    EXPECT_EQ(found, 1) << begin << "\n" << all;
  }
  int epochs = 0;
  for (const std::string &line : lines) {
    EXPECT_EQ(line.find("ms/step"), std::string::npos) << "a bar: " << line;
    epochs += line.compare(0, 6, "epoch ") == 0;
  }
  EXPECT_EQ(epochs, 3);
  Ended piped = end(arguments);
  EXPECT_EQ(piped.text.find("mean loss"), std::string::npos) << piped.text;
  EXPECT_NE(piped.text.find("\nepoch 0: eval loss " + evaluations[0] + ", accuracy "), std::string::npos)
      << piped.text;
}

TEST_F(SignalsTest, EvaluationsCanBeJson) {
  std::string text = end({"eval", artifact, "--data", data}).text;
  Ended ended = end({"eval", artifact, "--data", data, "--json", "--quiet"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text.find('\n'), ended.text.size() - 1);
  Json result = Json::parse(ended.text);
  EXPECT_NEAR(result["loss"].get<double>(), std::stod(text.substr(5)), 1e-6) << text;
  EXPECT_EQ(result["samples"], 12);
  EXPECT_EQ(result["counted"], 12);
  EXPECT_EQ(result["not_numbers"], 0);
  EXPECT_DOUBLE_EQ(result["accuracy"].get<double>(), result["right"].get<double>() / 12);
  EXPECT_NE(text.find("(" + std::to_string(result["right"].get<int>()) + " of 12)"), std::string::npos)
      << text;
  result = Json::parse(end({"eval", artifact, "--data", writeData("nan.npz", NAN), "--json"}).text);
  EXPECT_TRUE(result["loss"].is_null());
  EXPECT_EQ(result["not_numbers"], 1);
}
