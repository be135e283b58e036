// `ortc merge` and `ortc delta` against arithmetic of this test; what is refused; deltas of a session give the same
// bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "ortc/delta.h"
#include "test/e2e/Session.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// mlp-digits, and checkpoints of trainings on other orders of its data.
class MergeTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    shared = new TemporaryFolder;
    compile("model", {"--optimizer", "adamw:lr=1e-2"});
    run("model", "a", "4", {"--seed", "1"});
    run("model", "b", "7", {"--seed", "2"});
    run("model", "c", "4", {"--seed", "3"});
  }
  static void TearDownTestSuite() {
    delete shared;
    shared = nullptr;
  }
  static void compile(const std::string &name, const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"train",    ZooEntry("mlp-digits").model(),
                                       "-o",       path(name),
                                       "--shape",  "batch=64",
                                       "--target", "native",
                                       "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
  }
  static void run(const std::string &model, const std::string &save, const std::string &steps,
                  const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"run",     path(model), "--data",  ZooEntry("mlp-digits").data(),
                                       "--steps", steps,       "--quiet", "--save",
                                       path(save)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
  }
  static std::string path(const std::string &name) { return *shared / name; }
  /// The message of a command that is refused.
  static std::string refusal(const std::vector<std::string> &arguments, int status = 2) {
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.errors;
    std::string text = outcome.errors;
    for (size_t at; (at = text.find(path(""))) != std::string::npos;)
      text.erase(at, path("").size());
    return text.substr(0, text.find('\n'));
  }
  static std::string headerOf(const std::string &name) {
    std::string file = readFile(path(name));
    uint64_t bytes = 0;
    std::memcpy(&bytes, file.data(), 8);
    return file.substr(8, bytes);
  }
  static nlohmann::json metadataOf(const std::string &name) {
    return nlohmann::json::parse(headerOf(name))["__metadata__"];
  }
  static TemporaryFolder *shared;
};
TemporaryFolder *MergeTest::shared = nullptr;

TEST_F(MergeTest, IsTheWeightedMeanAndLoads) {
  mustRun({"merge", path("a"), path("b"), path("c"), "--weights", "120,80,0.5", "-o", path("mean")});
  auto mean = loadValues(path("mean")), a = loadValues(path("a")), b = loadValues(path("b")),
       c = loadValues(path("c"));
  ASSERT_EQ(mean.size(), a.size());
  int differing = 0;
  for (const auto &[name, values] : mean) {
    for (size_t i = 0; i < values.data.size(); ++i) {
      double x = a[name].data[i], y = b[name].data[i], z = c[name].data[i];
      if (values.type == DataType::Float32) {
        float expected = float((120.0 * x + 80.0 * y + 0.5 * z) / 200.5);
        ASSERT_EQ(float(values.data[i]), expected) << name << " " << i;
        differing += x != y;
      } else if (x == y && y == z) {
        ASSERT_EQ(values.data[i], x) << name;
      } else if (values.type == DataType::Int64) {
        ASSERT_EQ(values.bits[i], 7u) << name << ": the most steps";
      } else {
        ASSERT_NEAR(values.data[i], (120 * x + 80 * y + 0.5 * z) / 200.5, 1e-15) << name;
      }
    }
  }
  EXPECT_GT(differing, 1000) << "the trainings were the same";
  EXPECT_EQ(mean["lr"].data, a["lr"].data);
  // With its state, and its checksum is the runtime's.
  Session session(path("model"));
  ortc_load_info info{};
  info.size = sizeof info;
  ASSERT_EQ(ortc_checkpoint_load(session.get(), path("mean").c_str(), &info), ORTC_OK) << session.message();
  EXPECT_EQ(info.fresh_state, 0u);
  EXPECT_EQ(info.ignored, 0u);
  EXPECT_TRUE(metadataOf("mean").contains("ortc.checksum"));
  mustRun(
      {"eval", path("model"), "--data", ZooEntry("mlp-digits").data(), "--load", path("mean"), "--quiet"});
}

TEST_F(MergeTest, FilesThatAreAlikeAreTheirMean) {
  mustRun({"merge", path("a"), path("a"), path("a"), "--weights", "1,2,0.3", "-o", path("same"), "--quiet"});
  auto same = loadValues(path("same")), a = loadValues(path("a"));
  for (const auto &[name, values] : a)
    EXPECT_EQ(same[name].data, values.data) << name;
  EXPECT_EQ(metadataOf("same"), metadataOf("a")); // checksum and position, too
}

TEST_F(MergeTest, WeightsOfAnySizeAreWeights) {
  mustRun({"merge", path("a"), path("b"), "--weights", "1,3", "-o", path("mean"), "--quiet"});
  for (const char *weights : {"1e300,3e300", "5e-324,15e-324"}) {
    mustRun({"merge", path("a"), path("b"), "--weights", weights, "-o", path("other"), "--quiet"});
    auto mean = loadValues(path("mean")), other = loadValues(path("other"));
    for (const auto &[name, values] : mean)
      for (size_t i = 0; i < values.data.size(); ++i)
        ASSERT_NEAR(other[name].data[i], values.data[i], 1e-6 * std::abs(values.data[i])) << name << weights;
  }
}

TEST_F(MergeTest, InputsOfEveryKindAreLeftAlone) {
  mustRun({"delta", path("a"), path("b"), "-o", path("b.delta"), "--quiet"});
  std::string before = readFile(path("b.delta"));
  EXPECT_NE(refusal({"merge", "--base", path("a"), path("b.delta"), "-o", path("b.delta")}), "");
  EXPECT_EQ(readFile(path("b.delta")), before);
}

TEST_F(MergeTest, ThePositionOfATrainingIsThatOfAllOrOfNone) {
  mustRun({"merge", path("a"), path("b"), "-o", path("mean"), "--quiet"});
  for (const auto &[key, value] : metadataOf("mean").items())
    EXPECT_FALSE(key.starts_with("run.")) << key;
  run("model", "further", "2", {"--load", path("mean")});
}

TEST_F(MergeTest, WhatDoesNotGoTogetherIsRefused) {
  compile("sgd", {"--optimizer", "sgd"});
  run("sgd", "s", "1", {});
  auto merge = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "merge");
    flags.insert(flags.end(), {"-o", path("none")});
    return refusal(flags);
  };
  EXPECT_EQ(merge({path("a")}),
            "ortc: error: merge needs two checkpoints or more, or --base BASE with deltas");
  EXPECT_EQ(merge({path("a"), path("s")}),
            "ortc: error: s: has no '0.bias.exp_avg', which a has; they are of "
            "different models, or of different flags");
  EXPECT_EQ(merge({path("a"), path("b"), "--weights", "1"}),
            "ortc: error: --weights has 1 numbers for 2 files; give one for each");
  EXPECT_EQ(merge({path("a"), path("b"), "--weights", "1,nan"}),
            "ortc: error: --weights: 'nan' is no weight; give numbers from 0, one for each file, with commas "
            "between "
            "them");
  EXPECT_EQ(merge({path("a"), path("b"), "--weights", "0,0"}),
            "ortc: error: --weights: all are 0, and their sum must be above that");
  EXPECT_EQ(refusal({"merge", path("a"), path("b"), "-o", path("a")}).substr(0, 44),
            "ortc: error: -o a would overwrite the file a");
  EXPECT_EQ(
      merge({path("a"), path("b"), "--base", path("model")}),
      "ortc: error: a: is no delta, which --base asks for; ortc delta BASE NEW makes one of a checkpoint");
  EXPECT_FALSE(std::ifstream(path("none")).good());
}

TEST_F(MergeTest, DamagedAndDivergedFilesAreRefused) {
  std::string file = readFile(path("b"));
  file.back() ^= 1;
  shared->write("damaged", file);
  EXPECT_EQ(
      refusal({"merge", path("a"), path("damaged"), "-o", path("none")}, 1),
      "ortc: error: damaged: its tensors do not match its checksum; it was damaged on its way, take it from "
      "where it was saved again");
  Session session(path("model"));
  ASSERT_EQ(ortc_checkpoint_load(session.get(), path("b").c_str(), nullptr), ORTC_OK);
  std::vector<float> bias(64, 0);
  bias[5] = INFINITY;
  ASSERT_EQ(ortc_write(session.get(), "0.bias", bias.data(), 256), ORTC_OK) << session.message();
  ASSERT_EQ(ortc_checkpoint_save(session.get(), path("diverged").c_str(), nullptr, 0), ORTC_OK);
  EXPECT_EQ(refusal({"merge", path("a"), path("diverged"), "-o", path("none")}, 1),
            "ortc: error: diverged: '0.bias': element 5 is inf; leave the file of a training that has gone "
            "astray out");
  EXPECT_EQ(refusal({"delta", path("a"), path("diverged"), "-o", path("none")}, 1),
            "ortc: error: diverged: '0.bias': the change of element 5 is not finite; a training that has "
            "gone astray is "
            "not worth sending");
}

/// The delta that a device writes.
std::string deltaOf(const std::string &model, const std::string &checkpoint, const std::string &base,
                    ortc_delta_kind kind) {
  Session session(model);
  EXPECT_EQ(ortc_checkpoint_load(session.get(), checkpoint.c_str(), nullptr), ORTC_OK) << session.message();
  std::string from = base.empty() ? "" : readFile(base), file;
  ortc_delta delta{};
  delta.size = sizeof delta;
  delta.kind = kind;
  delta.base = from.data();
  delta.base_bytes = from.size();
  ortc_message message{};
  auto append = [](void *to, const void *data, size_t bytes) -> int32_t {
    static_cast<std::string *>(to)->append(static_cast<const char *>(data), bytes);
    return 0;
  };
  EXPECT_EQ(ortc_delta_write(&delta, session.getProgram(), session.get(), append, &file, &message), ORTC_OK)
      << message.text;
  return file;
}

TEST_F(MergeTest, DevicesWriteTheDeltasOfTheTool) {
  for (const char *base : {"model", "a"})
    for (auto kind : {ORTC_DELTA_FLOAT, ORTC_DELTA_INT8}) {
      SCOPED_TRACE(base + std::to_string(kind));
      std::vector<std::string> arguments{"delta", path(base), path("b"), "-o", path("d"), "--quiet"};
      if (kind == ORTC_DELTA_INT8)
        arguments.push_back("--int8");
      mustRun(arguments);
      shared->write("device", deltaOf(path("model"), path("b"), *base == 'a' ? path("a") : "", kind));
      EXPECT_EQ(metadataOf("d"), metadataOf("device")); // the checksums of all data and of the base
      auto tool = loadValues(path("d")), device = loadValues(path("device"));
      ASSERT_EQ(tool.size(), kind == ORTC_DELTA_INT8 ? 8u : 4u);
      ASSERT_EQ(tool.size(), device.size());
      for (const auto &[name, values] : tool) {
        EXPECT_EQ(values.data, device[name].data) << name;
        EXPECT_EQ(values.shape, device[name].shape) << name;
        EXPECT_EQ(values.type, device[name].type) << name;
      }
    }
}

TEST_F(MergeTest, StatesOfFunctionsAreLeftOut) {
  // Their names are the function's own: one for each tensor, and one number.
  compile("function", {"--optimizer", "onnx:" + sourcePath("functions/adagrad_norm.onnx") + ":lr=0.1"});
  run("function", "fa", "4", {"--seed", "1"});
  run("function", "fb", "7", {"--seed", "2"});
  ASSERT_GT(loadValues(path("fa")).size(), 5u) << "there is no state";
  for (const char *base : {"function", "fa"}) {
    mustRun({"delta", path(base), path("fb"), "-o", path("fd"), "--quiet"});
    shared->write("fdevice", deltaOf(path("function"), path("fb"), *(base + 1) == 'a' ? path("fa") : "",
                                     ORTC_DELTA_FLOAT));
    EXPECT_EQ(metadataOf("fd"), metadataOf("fdevice")) << base;
    std::set<std::string> names;
    for (const auto &[name, values] : loadValues(path("fd")))
      names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"0.bias", "0.weight", "2.bias", "2.weight"})) << base;
  }
}

TEST_F(MergeTest, ABaseAndTheMeanOfDeltas) {
  mustRun({"delta", path("a"), path("b"), "-o", path("ab"), "--quiet"});
  mustRun({"delta", path("a"), path("c"), "-o", path("ac"), "--quiet", "--int8"});
  mustRun({"merge", "--base", path("a"), path("ab"), path("ac"), "--weights", "3,1", "-o", path("next")});
  auto a = loadValues(path("a")), b = loadValues(path("b")), ac = loadValues(path("ac")),
       next = loadValues(path("next"));
  ASSERT_EQ(next.size(), a.size());
  size_t compared = 0;
  for (const auto &[name, values] : next) {
    bool changes = ac.count(name);
    compared += changes;
    for (size_t i = 0; i < values.data.size(); ++i) {
      if (!changes) {
        ASSERT_EQ(values.data[i], a[name].data[i]) << name << ": the state of the base stays";
        continue;
      }
      double first = float(b[name].data[i] - a[name].data[i]),
             second = ac[name].data[i] * ac[name + ":scales"].data[i / 256];
      ASSERT_EQ(float(values.data[i]), float(a[name].data[i] + (3 * first + second) / 4)) << name << " " << i;
    }
  }
  EXPECT_EQ(compared, 4u);
  // One delta on its base is what was trained, but for the rounding of both.
  mustRun({"merge", "--base", path("a"), path("ab"), "-o", path("again"), "--quiet"});
  auto again = loadValues(path("again"));
  for (const char *name : {"0.weight", "0.bias"})
    for (size_t i = 0; i < again[name].data.size(); ++i)
      ASSERT_NEAR(again[name].data[i], b[name].data[i],
                  1.2e-7 * (std::abs(b[name].data[i]) + std::abs(a[name].data[i])))
          << name;
  run("model", "further", "1", {"--load", path("next")});
}

TEST_F(MergeTest, DeltasOfAnotherBaseAreRefused) {
  mustRun({"delta", path("a"), path("b"), "-o", path("ab"), "--quiet"});
  EXPECT_EQ(refusal({"merge", "--base", path("c"), path("ab"), "-o", path("none")}),
            "ortc: error: ab: is not a delta of c, but of another checkpoint or model; give the base that "
            "its training "
            "began with");
  EXPECT_EQ(refusal({"merge", path("ab"), path("ab"), "-o", path("none")}),
            "ortc: error: ab: is a delta, which is nothing without its base; ortc merge --base BASE makes a "
            "checkpoint of both");
  EXPECT_EQ(
      refusal({"run", path("model"), "--data", ZooEntry("mlp-digits").data(), "--steps", "1", "--load",
               path("ab")},
              1),
      "ortc: error: ab: malformed checkpoint: it is a delta; ortc merge --base BASE makes a checkpoint of it "
      "and its base");
}

/// What a delta is of is decided where it is made: by the artifact on a device, and where the tool has none by names.
TEST_F(MergeTest, DeltasSayThemselvesWhatHasChanged) {
  compile("qat", {"--optimizer", "adamw", "--qat", ".*weight"});
  compile("tail", {"--optimizer", "adamw", "--train", "2.*"});
  run("qat", "q1", "1", {});
  run("qat", "q2", "3", {"--load", path("q1")});
  shared->write("device", deltaOf(path("qat"), path("q2"), path("q1"), ORTC_DELTA_FLOAT));
  mustRun({"merge", "--base", path("q1"), path("device"), "-o", path("q3"), "--quiet"});
  run("qat", "further", "1", {"--load", path("q3")});
  run("tail", "t", "2", {});
  mustRun({"delta", path("model"), path("a"), "-o", path("da"), "--quiet"});
  mustRun({"delta", path("tail"), path("t"), "-o", path("dt"), "--quiet"});
  EXPECT_EQ(refusal({"merge", "--base", path("model"), path("da"), path("dt"), "-o", path("none")}),
            "ortc: error: dt: has changes of other tensors than da; they are of artifacts that train "
            "different tensors");
  // One of fewer tensors is enough by itself: the others have not changed.
  mustRun({"merge", "--base", path("model"), path("dt"), "-o", path("partly"), "--quiet"});
  auto partly = loadValues(path("partly")), t = loadValues(path("t"));
  EXPECT_EQ(partly.count("0.weight"), 1u);
  for (size_t i = 0; i < t["2.bias"].data.size(); ++i)
    EXPECT_NEAR(partly["2.bias"].data[i], t["2.bias"].data[i], 1e-7);
}

/// What follows from the bytes: an int8 delta is small.
TEST_F(MergeTest, IntegersTakeAQuarter) {
  mustRun({"delta", path("model"), path("b"), "-o", path("f"), "--quiet"});
  mustRun({"delta", path("model"), path("b"), "-o", path("i"), "--quiet", "--int8"});
  auto dataOf = [&](const char *name) { return readFile(path(name)).size() - 8 - headerOf(name).size(); };
  EXPECT_EQ(dataOf("f"), 4u * (64 * 64 + 64 + 64 * 10 + 10));
  EXPECT_EQ(dataOf("i"), 64u * 64 + 64 + 64 * 10 + 10 + 4 * (16 + 1 + 3 + 1));
}

} // namespace
