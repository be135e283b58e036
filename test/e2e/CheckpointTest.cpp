// Checkpoints of other artifacts of one model: what they change is said, what does not fit is refused with the reason.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

#include "support/Text.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class CheckpointTest : public testing::Test {
protected:
  void compile(const std::string &name, const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"train",    entry.model(), "-o",     folder / name, "--shape",
                                       "batch=64", "--target",    "native", "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
  }
  std::vector<std::string> makeRun(const std::string &artifact, const std::string &load,
                                   const std::string &save = "ck") {
    std::vector<std::string> arguments{"run", folder / artifact, "--data",     entry.data(), "--steps",
                                       "3",   "--save",          folder / save};
    if (!load.empty())
      arguments.insert(arguments.end(), {"--load", folder / load});
    return arguments;
  }
  /// What the run says of the checkpoint.
  std::string noteOn(const std::string &artifact, const std::string &load) {
    Outcome outcome = mustRun(makeRun(artifact, load));
    std::string notes, mark = "ortc: note: " + folder / load + ": ";
    for (size_t at = 0; (at = outcome.errors.find(mark, at)) != std::string::npos;) {
      at += mark.size();
      notes += outcome.errors.substr(at, outcome.errors.find('\n', at) + 1 - at);
    }
    return notes;
  }
  std::string refusal(const std::string &artifact, const std::string &load) {
    std::vector<std::string> arguments = makeRun(artifact, load);
    arguments.push_back("--quiet");
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 1);
    std::string mark = "ortc: error: " + folder / load + ": ";
    return outcome.errors.starts_with(mark) ? outcome.errors.substr(mark.size()) : outcome.errors;
  }
  void expectRefusal(const std::vector<std::string> &arguments, const std::string &message) {
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
  }

  TemporaryFolder folder;
  ZooEntry entry{"mlp-digits"};
};

TEST_F(CheckpointTest, WhatItChangesIsSaid) {
  compile("a", {"--optimizer", "adamw:beta1=0.8,epsilon=1e-06", "--accumulate", "2"});
  compile("b", {"--optimizer", "adamw", "--accumulate", "3"});
  mustRun(makeRun("a", "", "a.ck"));
  EXPECT_EQ(noteOn("a", "a.ck"), "");
  EXPECT_EQ(noteOn("b", "a.ck"),
            "its values replace those of the artifact: accumulate 2 instead of 3, beta1 0.8 "
            "instead of 0.9, epsilon 1e-06 instead of 1e-08\n");
  std::vector<std::string> quiet = makeRun("b", "a.ck");
  quiet.push_back("--quiet");
  EXPECT_EQ(mustRun(quiet).errors, "");
}

TEST_F(CheckpointTest, WhatIsDroppedIsSaid) {
  compile("plain", {"--optimizer", "sgd"});
  compile("accumulating", {"--optimizer", "sgd", "--accumulate", "2"});
  compile("adam", {"--optimizer", "adam"});
  mustRun(makeRun("adam", "", "adam.ck"));
  mustRun(makeRun("accumulating", "", "accumulating.ck"));
  for (const char *name : {"adam.ck", "accumulating.ck"}) {
    std::string note = noteOn("plain", name);
    EXPECT_TRUE(note.starts_with("the artifact has no use for ")) << note;
    EXPECT_NE(note.find(name[1] == 'd' ? "'0.bias.exp_avg'" : "'0.bias.accumulated'"), std::string::npos)
        << note;
    EXPECT_NE(
        note.find(" more); optimizer state and gradients that wait for an update are dropped with them\n"),
        std::string::npos)
        << note;
  }
  // An evaluation takes the weights, and nothing is lost with it.
  EXPECT_EQ(mustRun({"eval", folder / "plain", "--data", entry.data(), "--load", folder / "adam.ck"}).errors,
            "");
}

TEST_F(CheckpointTest, RefusalsSayWhatDoesNotFit) {
  compile("momentum", {"--optimizer", "sgd:momentum=0.9"});
  compile("adam", {"--optimizer", "adam"});
  compile("double", {"--optimizer", "adam", "--precision", "f64"});
  compile("half", {"--optimizer", "adam", "--freeze", "2.*"});
  for (const char *name : {"adam", "half"})
    mustRun(makeRun(name, "", std::string(name) + ".ck"));
  EXPECT_EQ(
      refusal("momentum", "adam.ck"),
      "checkpoint has no '2.bias.momentum_buffer'; it has the state of another optimizer: compile with "
      "the --optimizer and the --accumulate that it was saved with, or load a file with weights alone\n");
  EXPECT_EQ(refusal("double", "adam.ck"),
            "'0.bias' is float32 [64], but the artifact needs float64 [64]; compile with the --precision and "
            "--parameters that it was saved with, or export it and compile the model that this writes\n");
  EXPECT_EQ(refusal("adam", "half.ck"),
            "checkpoint has no '2.weight'; it was saved with another model, or with "
            "other tensors trained (--train, --freeze)\n");
  // A flag that adds tensors is named.
  compile("scaled", {"--optimizer", "adam", "--loss-scale", "dynamic"});
  compile("lora", {"--optimizer", "adam", "--lora", "0.weight"});
  compile("qat", {"--optimizer", "adam", "--qat", ".*weight"});
  mustRun(makeRun("lora", "", "lora.ck"));
  auto reason = [&](const char *artifact, const char *load) {
    std::string message = refusal(artifact, load);
    return message.substr(std::min(message.find(';'), message.size()));
  };
  EXPECT_EQ(reason("scaled", "adam.ck"),
            "; it was saved without --loss-scale: compile without it, or load a file with weights alone\n");
  EXPECT_EQ(reason("lora", "adam.ck"),
            "; it was saved without --lora: export it, and compile the model that this writes\n");
  EXPECT_EQ(reason("adam", "lora.ck"), "; it has adapters: compile with the --lora that it was saved with\n");
  EXPECT_EQ(reason("qat", "adam.ck"), "; it was saved without --qat, or with --qat of other weights: export "
                                      "it, and compile the model that this writes\n");
}

/// A safetensors file with one replacement in its header or its data, of the same size.
TEST_F(CheckpointTest, WhatNoTrainingSavesIsRefused) {
  compile("adam", {"--optimizer", "adam"});
  compile("free", {"--optimizer", "schedule_free_adamw", "--ema", "decay=0.9", "--loss-scale", "dynamic"});
  mustRun(makeRun("adam", "", "adam.ck"));
  mustRun(makeRun("free", "", "free.ck"));
  const std::string good = readFile(folder / "adam.ck");
  auto load = [&](const std::string &text, const char *artifact = "adam") {
    std::ofstream(folder / "bad.ck", std::ios::binary) << text;
    return refusal(artifact, "bad.ck");
  };
  std::string text = good;
  text.replace(text.find("\"ortc.format\":\"1"), 16, "\"ortc.format\":\"2");
  EXPECT_EQ(load(text),
            "malformed checkpoint: its metadata has 'ortc.format' = '2', and this version reads 1\n");
  std::string checksum = "\"ortc.checksum\""; // another key: numbers are changed below
  auto uncheck = [&](const std::string &name) {
    std::string text = readFile(folder / name);
    text.replace(text.find(checksum), checksum.size(), "\"free.checksum\"");
    return text;
  };
  struct Case {
    const char *name;
    double value;
    std::string message, artifact = "adam";
  };
  const std::string number = "it must be a number from 0 to 3.4e38",
                    count = "it must be from 0 to 9007199254740992";
  const Case cases[] = {
      {"bias_correction1", std::nan(""), "is nan, but it must be a number from 0 to 1"},
      {"bias_correction1", -5, "is -5, but it must be a number from 0 to 1"},
      {"bias_correction2", 2, "is 2, but it must be a number from 0 to 1"},
      {"beta1", 1, "is 1, but it must be a number of at least 0 and below 1"},
      {"lr", 1e300, "is 1e+300, but " + number},
      {"lr", -1, "is -1, but " + number},
      {"lr", HUGE_VAL, "is inf, but " + number},
      {"updates", std::nan(""), "is nan, but " + number, "free"},
      {"updates", -3, "is -3, but " + number, "free"},
      {"lr_max", 1e300, "is 1e+300, but " + number, "free"},
      {"weight_sum", -1, "is -1, but " + number, "free"},
      {"loss_scale", HUGE_VAL, "is inf, but it must be a number above 0, up to 3.4e38", "free"},
      {"loss_scale", 0, "is 0, but it must be a number above 0, up to 3.4e38", "free"},
      {"step", -1, "is -1, but " + count, "free"},
      {"ema.n_averaged", 1e18, "is 1e+18, but " + count, "free"},
      {"ema_decay", 2, "is 2, but it must be a number of at least 0 and below 1", "free"}};
  auto change = [&](const std::string &checkpoint, const std::string &name, double first) {
    std::string text = uncheck(checkpoint);
    uint64_t header = 0;
    std::memcpy(&header, text.data(), sizeof header);
    size_t entry = text.find("\"" + name + "\":"), offset = text.find("offsets\":[", entry);
    offset = 8 + header + std::stoul(text.substr(offset + 10));
    const std::string type = text.substr(text.find("\"dtype\":\"", entry) + 9, 3);
    auto put = [&](auto value) { std::memcpy(text.data() + offset, &value, sizeof value); };
    if (type == "F32")
      put(float(first));
    else if (type == "I64")
      put(int64_t(first));
    else
      put(first);
    return text;
  };
  for (const Case &each : cases)
    EXPECT_EQ(load(change(each.artifact + ".ck", each.name, each.value), each.artifact.c_str()),
              "'" + std::string(each.name) + "' " + each.message + "; no training has saved this\n");

  // States in bytes.
  compile("bytes", {"--optimizer", "adamw8bit"});
  mustRun(makeRun("bytes", "", "bytes.ck"));
  for (double value : {-1.0, HUGE_VAL, std::nan("")})
    EXPECT_EQ(load(change("bytes.ck", "0.weight.exp_avg_absmax", value), "bytes"),
              "element 0 of '0.weight.exp_avg_absmax' is " + formatNumber(value) + ", but " + number +
                  "; no training has saved this\n");
  EXPECT_EQ(
      load(good, "bytes"),
      "'0.weight.exp_avg' is float32 [64, 64], but the artifact needs uint8 [16, 256]; one of both is an "
      "optimizer's state in bytes: load it with the optimizer that it was saved with, or export it and "
      "compile the model that this writes\n");
  expectRefusal({"merge", folder / "bytes.ck", folder / "bytes.ck", "-o", folder / "mean.ck"},
                "'0.weight.exp_avg' is an optimizer's state in bytes, of which there is no mean");
}

TEST_F(CheckpointTest, DeltasNeedWeightsToBeginWith) {
  compile("full", {});
  mustRun(makeRun("full", "", "a.ck"));
  compile("bare", {"--no-weights"});
  expectRefusal({"delta", folder / "bare", folder / "a.ck", "-o", folder / "d.st"},
                "was compiled with --no-weights; give the checkpoint that training began with");
}

} // namespace
