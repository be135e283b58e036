// --lora: adapters against those of the PEFT library (test/lora/make-lora.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Both sides compute in float32: five steps of some hundred rounded numbers of about one.
constexpr double kTolerance = 2e-6;

class LoraTest : public testing::Test {
protected:
  std::string source(const std::string &name) const { return sourcePath("lora/" + name); }
  std::vector<std::string> trainFlags(const std::vector<std::string> &more) const {
    std::vector<std::string> flags{"train",       source("model.onnx"),      "-o",       folder / "artifact",
                                   "--loss",      "cross_entropy",           "--target", "native",
                                   "--optimizer", "sgd:lr=0.1,momentum=0.9", "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  void compile(const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"--lora", "(word|query|value|mix).weight:rank=3,alpha=6", "--lora",
                                   "head.weight:rank=2,alpha=3"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(trainFlags(flags));
  }
  /// Five steps from the adapters of PEFT; the checkpoint.
  std::string train() {
    std::string saved = folder / "saved.safetensors";
    mustRun({"run", folder / "artifact", "--data", source("data.npz"), "--load", source("start"), "--steps",
             "5", "--no-shuffle", "--metrics", folder / "run.jsonl", "--save", saved, "--quiet"});
    return saved;
  }
  void expectNear(const Values &got, const Values &wanted, const std::string &what) {
    ASSERT_EQ(got.data.size(), wanted.data.size()) << what;
    for (size_t i = 0; i < got.data.size(); ++i)
      ASSERT_NEAR(got.data[i], wanted.data[i], kTolerance) << what << " at " << i;
  }

  /// A copy of the adapters of PEFT.
  std::string copyStart() {
    std::filesystem::copy(source("start"), folder / "peft");
    return folder / "peft";
  }
  /// What ortc says when it refuses the command with this status.
  std::string refusal(const std::vector<std::string> &arguments, int status) {
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, status) << arguments[0] << ": " << outcome.errors;
    return outcome.errors;
  }

  TemporaryFolder folder;
};

TEST_F(LoraTest, TrainsAsPeftDoes) {
  compile();
  std::string saved = train();
  auto golden = loadValues(source("golden.npz"));
  std::vector<double> losses = loadLosses(folder / "run.jsonl");
  const std::vector<double> &wanted = valuesOf(golden, "loss").data;
  ASSERT_EQ(losses.size(), wanted.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], wanted[i], kTolerance);
  mustRun({"export", folder / "artifact", "--load", saved, "--adapter", folder / "adapter", "--quiet"});
  auto written = loadValues(folder / "adapter/adapter_model.safetensors");
  size_t compared = 0;
  for (const auto &[key, values] : golden)
    if (key.starts_with("adapter/")) {
      expectNear(valuesOf(written, key.substr(8)), values, key);
      ++compared;
    }
  EXPECT_EQ(compared, written.size());
}

TEST_F(LoraTest, MergedWeightsGiveTheSame) {
  compile();
  std::string saved = train(), merged = folder / "merged.onnx";
  mustRun({"export", folder / "artifact", "--load", saved, "-o", merged, "--quiet"});
  mustRun({"train", merged, "-o", folder / "plain", "--loss", "none", "--target", "native", "--quiet"});
  mustRun({"predict", folder / "plain", "--data", source("data.npz"), "-o", folder / "p.npz", "--quiet"});
  expectNear(valuesOf(loadValues(folder / "p.npz"), "output"),
             valuesOf(loadValues(source("golden.npz")), "output"), "output");
}

/// Without a step the model is what it was: one factor is zero.
TEST_F(LoraTest, BeginsWithTheModel) {
  compile({"--seed", "5"});
  mustRun({"predict", folder / "artifact", "--data", source("data.npz"), "-o", folder / "p.npz", "--quiet"});
  expectNear(valuesOf(loadValues(folder / "p.npz"), "output"),
             valuesOf(loadValues(source("golden.npz")), "plain/output"), "output");
}

/// Checkpoints hold adapters and their state alone, and what --train names.
TEST_F(LoraTest, CheckpointsHoldAdapters) {
  compile({"--train", "head.bias"});
  mustRun({"run", folder / "artifact", "--data", source("data.npz"), "--steps", "1", "--save",
           folder / "s.safetensors", "--quiet"});
  auto saved = loadValues(folder / "s.safetensors");
  EXPECT_TRUE(saved.count("head.bias"));
  EXPECT_TRUE(saved.count("query.lora_A.weight"));
  EXPECT_FALSE(saved.count("query.weight"));
  EXPECT_FALSE(saved.count("query.bias"));
}

/// Dropout in front of the first factor: in training only, and other numbers with every step. The second factors of
/// PEFT's adapters are not zero, and no step of six is the last of its group, so weights stay.
TEST_F(LoraTest, DropsOut) {
  std::vector<double> losses[2];
  std::string evaluated[2];
  for (int drops : {0, 1}) {
    std::string dropout = drops ? ",dropout=0.5" : "", metrics = folder / (drops ? "1.jsonl" : "0.jsonl");
    mustRun(trainFlags({"--lora", "(word|query|value|mix).weight:rank=3,alpha=6" + dropout, "--lora",
                        "head.weight:rank=2,alpha=3" + dropout, "--accumulate", "10"}));
    mustRun({"run", folder / "artifact", "--data", source("data.npz"), "--load", source("start"), "--steps",
             "6", "--no-shuffle", "--metrics", metrics, "--quiet"});
    losses[drops] = loadLosses(metrics);
    ASSERT_EQ(losses[drops].size(), 6u);
    evaluated[drops] =
        mustRun({"eval", folder / "artifact", "--data", source("data.npz"), "--load", source("start")}).text;
  }
  EXPECT_EQ(losses[0][0], losses[0][5]); // the first of five batches again
  EXPECT_NE(losses[1][0], losses[0][0]);
  EXPECT_NE(losses[1][0], losses[1][5]);
  EXPECT_NE(evaluated[0], "");
  EXPECT_EQ(evaluated[1], evaluated[0]);
}

TEST_F(LoraTest, RefusesWhatCannotBe) {
  struct Case {
    std::vector<std::string> flags;
    std::string message;
  };
  const Case cases[] = {
      {{"--lora", "nothing.*"}, "--lora nothing.*: no initializer has a name that it matches whole"},
      {{"--lora", "query.weight:rank=13"}, "rank is 13, but 'query.weight' has rank 12 at most"},
      {{"--lora", "query.weight:rank=0"}, "rank is 0 but must be at least 1"},
      {{"--lora", "query.bias"}, "'query.bias' cannot have an adapter: "},
      {{"--lora", "query.weight:ranks=3"}, "ranks"},
      {{"--lora", "query.weight:rank=1e9"},
       "rank is '1e9' but must be a whole number, in digits, below 2^63"},
  };
  for (const Case &each : cases) {
    Outcome outcome = runTool(trainFlags(each.flags));
    EXPECT_EQ(outcome.status, 2) << each.message;
    EXPECT_NE(outcome.errors.find(each.message), std::string::npos) << outcome.errors;
  }
}

TEST_F(LoraTest, RefusesFoldersThatDoNotFit) {
  compile();
  std::string other = folder / "other";
  mustRun({"train", source("model.onnx"), "-o", other, "--loss", "cross_entropy", "--target", "native",
           "--quiet"});
  Outcome outcome =
      runTool({"run", other, "--data", source("data.npz"), "--load", source("start"), "--steps", "1"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("has no adapters to load from one"), std::string::npos) << outcome.errors;
  auto load = [&](const std::string &spec) {
    mustRun(trainFlags({"--lora", spec}));
    outcome = runTool({"run", folder / "artifact", "--data", source("data.npz"), "--load", source("start"),
                       "--steps", "1"});
    EXPECT_EQ(outcome.status, 1);
    return outcome.errors;
  };
  std::string errors = load("query.weight:rank=3,alpha=12");
  EXPECT_NE(errors.find("a scale of 2, but the artifact was compiled with one of 4"), std::string::npos)
      << errors;
  errors = load("query.weight:rank=4,alpha=8");
  EXPECT_NE(errors.find("has shape [3, 12], but the artifact's has [4, 12]"), std::string::npos) << errors;
  outcome = runTool({"export", other, "--quiet"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("--adapter DIR"), std::string::npos) << outcome.errors;
}

/// The two files of a folder that is loaded are inputs, which no command replaces.
TEST_F(LoraTest, KeepsTheFolderThatItLoads) {
  compile();
  std::string peft = copyStart(), artifact = folder / "artifact", data = source("data.npz");
  for (const char *name : {"/adapter_config.json", "/adapter_model.safetensors"}) {
    std::string file = peft + name, before = readFile(file);
    const std::vector<std::string> commands[] = {
        {"run", artifact, "--data", data, "--load", peft, "--steps", "1", "--save", file},
        {"run", artifact, "--data", data, "--load", peft, "--steps", "1", "--metrics", file},
        {"predict", artifact, "--data", data, "--load", peft, "-o", file},
        {"export", artifact, "--load", peft, "-o", file},
        {"export", artifact, "--load", peft, "--adapter", peft}};
    for (const std::vector<std::string> &command : commands)
      EXPECT_NE(refusal(command, 2).find(" would overwrite a file of --load " + peft + "/adapter_"),
                std::string::npos);
    EXPECT_EQ(readFile(file), before);
  }
  mustRun(
      {"run", artifact, "--data", data, "--load", peft, "--steps", "1", "--save", peft + "/ck", "--quiet"});
  mustRun({"export", artifact, "--load", peft + "/ck", "--adapter", peft, "--quiet"});
}

/// A pipe in the folder is not waited for.
TEST_F(LoraTest, ReadsRegularFilesAlone) {
  compile();
  std::string peft = copyStart();
  for (const char *name : {"/adapter_model.safetensors", "/adapter_config.json"}) {
    std::filesystem::remove(peft + name);
    ASSERT_EQ(mkfifo((peft + name).c_str(), 0600), 0);
    EXPECT_EQ(refusal({"eval", folder / "artifact", "--data", source("data.npz"), "--load", peft}, 1),
              "ortc: error: " + peft + name + ": is not a regular file\n");
  }
}

/// No tensor of a checkpoint tells the scale of an adapter, so its metadata does.
TEST_F(LoraTest, CheckpointsKnowTheirScale) {
  compile();
  std::string saved = train();
  compile({"--clip-norm", "1"}); // the same adapters
  mustRun({"eval", folder / "artifact", "--data", source("data.npz"), "--load", saved});
  mustRun(trainFlags(
      {"--lora", "(word|query|value|mix).weight:rank=3,alpha=6", "--lora", "head.weight:rank=2,alpha=12"}));
  const std::vector<std::string> commands[] = {
      {"run", folder / "artifact", "--data", source("data.npz"), "--load", saved},
      {"eval", folder / "artifact", "--data", source("data.npz"), "--load", saved},
      {"export", folder / "artifact", "--load", saved, "-o", folder / "merged.onnx"}};
  for (const std::vector<std::string> &command : commands)
    EXPECT_EQ(
        refusal(command, 1),
        "ortc: error: " + saved +
            ": the adapter of 'head.weight' has a scale of 1.5, but the artifact "
            "was compiled with one of 6; compile with the alpha and rs of --lora that it was saved with\n");
  // Without the fact, as older versions and other hosts write it.
  std::string text = readFile(saved);
  for (size_t at = 0; (at = text.find("lora.scale", at)) != std::string::npos;)
    text.replace(at, 10, "other.fact");
  std::ofstream(saved, std::ios::binary) << text;
  mustRun(commands[1]);
}

/// What PEFT's configuration says is taken as PEFT takes it, or refused.
TEST_F(LoraTest, ReadsConfigurationsAsPeftDoes) {
  compile();
  std::string peft = copyStart(), config = peft + "/adapter_config.json";
  const std::string good = readFile(config);
  auto load = [&](const std::string &from, const std::string &to, int status) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(config, std::ios::binary) << text;
    std::string errors =
        refusal({"eval", folder / "artifact", "--data", source("data.npz"), "--load", peft}, status);
    std::string mark = "ortc: error: " + config + ": ";
    return errors.starts_with(mark) ? errors.substr(mark.size()) : errors;
  };
  const std::string alphas = "\"alpha_pattern\": {\n    \"head\": 3",
                    ranks = "\"rank_pattern\": {\n    \"head\": 2";
  auto alpha = [](const std::string &key) { return "\"alpha_pattern\": {\"" + key + "\": 3"; };
  EXPECT_EQ(load(alphas, alpha("h.*d"), 0), "");
  EXPECT_EQ(load(alphas, alpha("^head"), 0), "");
  EXPECT_EQ(
      load(alphas, alpha("ead"), 1),
      "the adapter of 'head.weight' has rank 2 and alpha 6, a scale of 3, but the artifact was compiled "
      "with one of 1.5\n");
  EXPECT_EQ(load(alphas, alpha("["), 1), "'alpha_pattern' has the key '[', an expression with a '[' without "
                                         "its ']', which is not taken; write the "
                                         "module's name\n");
  EXPECT_EQ(load(ranks + "\n  }", "\"rank_pattern\": [1]", 1),
            "'rank_pattern' is [1], but it must be an object with a number for each module\n");
  EXPECT_EQ(load("\"r\": 3", "\"r\": \"3\"", 1), "'r' is \"3\", but it must be a number\n");
  EXPECT_EQ(load("\"lora_alpha\": 6", "\"lora_alpha\": [6]", 1),
            "'lora_alpha' is [6], but it must be a number\n");
  EXPECT_EQ(load("\"modules_to_save\": null", "\"modules_to_save\": [\"norm\"]", 1),
            "has layers that were trained whole ('modules_to_save' is [\"norm\"]), which adapters of --lora "
            "have not\n");
  EXPECT_EQ(load("\"lora_bias\": false", "\"lora_bias\": true", 1),
            "has biases of adapters ('lora_bias' is true), which adapters of --lora have not\n");
  EXPECT_EQ(load("\"bias\": \"none\"", "\"bias\": \"all\"", 1),
            "has trained biases ('bias' is \"all\"), which adapters of --lora have not\n");
}

/// Every command says which tensors of a folder it leaves out.
TEST_F(LoraTest, SaysWhatOfAFolderIsLeft) {
  mustRun(trainFlags({"--lora", "query.weight:rank=3,alpha=6"}));
  std::string artifact = folder / "artifact", data = source("data.npz"), peft = source("start");
  const std::vector<std::string> commands[] = {
      {"run", artifact, "--data", data, "--load", peft, "--steps", "1"},
      {"eval", artifact, "--data", data, "--load", peft},
      {"predict", artifact, "--data", data, "--load", peft, "-o", folder / "p.npz"},
      {"export", artifact, "--load", peft, "-o", folder / "merged.onnx"}};
  for (const std::vector<std::string> &command : commands)
    EXPECT_NE(mustRun(command).errors.find(
                  "ortc: note: " + peft +
                  ": 8 of its 10 tensors belong to no adapter of the artifact and are not loaded\n"),
              std::string::npos)
        << command[0];
}

TEST_F(LoraTest, NotesSayWhatIsTrained) {
  auto notes = [&](std::vector<std::string> more) {
    std::vector<std::string> flags = trainFlags(more);
    std::erase(flags, "--quiet");
    return mustRun(flags).errors;
  };
  std::string text = notes({"--lora", "(word|query).weight:rank=3,dropout=0.1", "--train", "query.weight"});
  EXPECT_NE(text.find("ortc: note: 2 adapters are trained; the weights beside them stay as they are, but for "
                      "'query.weight', as --train says\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("ortc: note: the dropout of --lora is not for embeddings: 'word.weight' has none\n"),
            std::string::npos)
      << text;
  text = notes({"--lora", "query.weight:rank=3,dropout=0.1"});
  EXPECT_NE(text.find("1 adapter is trained; the weights beside them stay as they are\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("not for embeddings"), std::string::npos) << text;
}

} // namespace
