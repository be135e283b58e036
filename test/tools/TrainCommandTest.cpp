// Flags of `ortc train` and what the compiler is told. What compiles is replaced by a function that remembers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"

using namespace ortc;

static CompileOptions compiled;
static TuneOptions tuned;

Status ortc::tool::train(const CompileOptions &options, const TuneOptions &tuning, const std::string &,
                         const RecipeFile &) {
  compiled = options;
  tuned = tuning;
  return Status();
}

/// Parses and runs a command line; returns the message of an error, or "".
static std::string run(std::vector<std::string> arguments) {
  compiled = {};
  tuned = {};
  CLI::App app;
  tool::Tool tool(app, /*most=*/1);
  tool::addTrainCommand(tool);
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 takes them
  arguments.push_back("train");
  try {
    app.parse(arguments);
  } catch (const CLI::Error &error) {
    return error.what();
  }
  if (!app.get_subcommand("train")->remaining().empty())
    return "unknown: " + app.get_subcommand("train")->remaining().front();
  testing::internal::CaptureStderr();
  int status = tool.action();
  std::string text = testing::internal::GetCapturedStderr();
  return status ? text : "";
}

/// A command line with a model and an output before these flags.
static std::string train(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"model.onnx", "-o", "out"});
  return run(flags);
}

TEST(TrainCommandTest, HasTheDocumentedDefaults) {
  ASSERT_EQ(train({}), "");
  EXPECT_EQ(compiled.model, "model.onnx");
  EXPECT_EQ(compiled.output, "out");
  EXPECT_EQ(compiled.losses.front().name, "cross_entropy");
  EXPECT_EQ(compiled.maxWorkers, 2u);
  EXPECT_EQ(compiled.targets, (std::vector<std::string>{"host"}));
  EXPECT_TRUE(compiled.source);
  EXPECT_FALSE(compiled.gradients);
}

TEST(TrainCommandTest, TuningHasAFileOfItsOwn) {
  ASSERT_EQ(train({}), "");
  EXPECT_FALSE(tuned.measures);
  EXPECT_EQ(tuned.path(), "");
  ASSERT_EQ(train({"--tune"}), "");
  EXPECT_TRUE(tuned.measures);
  EXPECT_EQ(tuned.path(), "ortc-tune.json");
  ASSERT_EQ(train({"--tune-cache", "a.json"}), "");
  EXPECT_FALSE(tuned.measures);
  EXPECT_EQ(tuned.path(), "a.json");
  ASSERT_EQ(train({"--tune-cache", "a.json", "--tune"}), "");
  EXPECT_TRUE(tuned.measures);
  EXPECT_EQ(tuned.path(), "a.json");
}

TEST(TrainCommandTest, TakesBindingsAndShapesInTheirOrder) {
  ASSERT_EQ(train({"--shape", "batch=32", "--shape", "seq=8,width=4", "--binding", "one", "--shape",
                   "batch=1", "--shape=image=1x3x8x8"}),
            "");
  ASSERT_EQ(compiled.bindings.size(), 2u);
  EXPECT_EQ(compiled.bindings[0].shapes.size(), 3u);
  ASSERT_EQ(compiled.bindings[1].shapes.size(), 2u);
  EXPECT_EQ(compiled.bindings[1].name, "one");
  EXPECT_EQ(compiled.bindings[1].shapes[1].dims, (std::vector<int64_t>{1, 3, 8, 8}));
}

TEST(TrainCommandTest, LeavesRegularExpressionsAlone) {
  ASSERT_EQ(train({"--freeze", "(conv1|layer1).*", "--freeze", "[ab]", "--freeze", "a{1,2},b", "--train",
                   "[x,y]", "--group", "[bn]:lr_scale=0.5,weight_decay=0"}),
            "");
  ASSERT_EQ(compiled.freeze.size(), 3u);
  EXPECT_EQ(compiled.freeze[0].getText(), "(conv1|layer1).*");
  EXPECT_EQ(compiled.freeze[1].getText(), "[ab]");
  EXPECT_EQ(compiled.freeze[2].getText(), "a{1,2},b");
  ASSERT_EQ(compiled.train.size(), 1u);
  EXPECT_EQ(compiled.train[0].getText(), "[x,y]");
  ASSERT_EQ(compiled.groups.size(), 1u);
  EXPECT_EQ(compiled.groups[0].pattern.getText(), "[bn]");
}

TEST(TrainCommandTest, ARepeatedFlagDoesNotEatTheModel) {
  ASSERT_EQ(run({"--freeze", "a", "model.onnx", "-o", "out"}), "");
  EXPECT_EQ(compiled.model, "model.onnx");
  EXPECT_EQ(compiled.freeze.size(), 1u);
}

TEST(TrainCommandTest, FillsEveryFlag) {
  ASSERT_EQ(train({"--loss",
                   "nll",
                   "--loss-input",
                   "logits",
                   "--optimizer",
                   "adamw:lr=1e-3,weight_decay=0.01",
                   "--clip-norm",
                   "1.5",
                   "--clip-value",
                   "2",
                   "--batch-norm",
                   "frozen",
                   "--dropout",
                   "train",
                   "--gradients",
                   "--max-workers",
                   "4",
                   "--target",
                   "x86-64-v3",
                   "--target",
                   "x86-64-v4",
                   "--numerics",
                   "portable",
                   "--seed",
                   "18446744073709551615",
                   "--no-source",
                   "--compile-to",
                   "plan",
                   "--dump-ir",
                   "ir",
                   "--dump-buffers",
                   "b.csv",
                   "--report",
                   "r.json",
                   "--quiet"}),
            "");
  EXPECT_EQ(compiled.losses.front().name, "nll");
  EXPECT_EQ(compiled.lossInput, "logits");
  EXPECT_EQ(compiled.optimizer.name, "adamw");
  EXPECT_EQ(compiled.clipNorm, 1.5);
  EXPECT_EQ(compiled.clipValue, 2);
  EXPECT_EQ(compiled.batchNorm.mode, BatchNormMode::Frozen);
  EXPECT_EQ(compiled.dropout.mode, DropoutMode::Train);
  EXPECT_TRUE(compiled.gradients);
  EXPECT_EQ(compiled.maxWorkers, 4u);
  EXPECT_EQ(compiled.targets, (std::vector<std::string>{"x86-64-v3", "x86-64-v4"}));
  EXPECT_EQ(compiled.numerics, Numerics::Portable);
  EXPECT_EQ(compiled.seed, ~uint64_t(0));
  EXPECT_FALSE(compiled.source);
  EXPECT_EQ(compiled.compileTo, "plan");
  EXPECT_EQ(compiled.dumpIr, "ir");
  EXPECT_EQ(compiled.dumpBuffers, "b.csv");
  EXPECT_EQ(compiled.report, "r.json");
  EXPECT_TRUE(compiled.quiet);
}

TEST(TrainCommandTest, RefusesWithTheNameOfTheFlag) {
  EXPECT_EQ(train({"--loss", "nosuch"}).substr(0, 35), "--loss: there is no loss 'nosuch'; ");
  EXPECT_EQ(
      train({"--loss", "mse", "--loss", "l1"}),
      "--loss: 'mse' has no name, and there are 2 losses; write NAME=SPEC@OUTPUT, whose label is the input "
      "label.NAME");
  EXPECT_EQ(train({"--clip-norm", "-1"}),
            "--clip-norm: '-1' must be a number above 0 that float32 has: 1.4e-45 to 3.4e38");
  for (const char *value : {"0", "1e-46", "1e39", "nan", "inf"})
    EXPECT_EQ(train({"--clip-value", value}),
              "--clip-value: '" + std::string(value) +
                  "' must be a number above 0 that float32 has: 1.4e-45 to 3.4e38");
  EXPECT_EQ(train({"--max-workers", "0"}),
            "--max-workers: '0' must be a whole number of at least 1 and at most 256");
  EXPECT_EQ(train({"--seed", "-1"}), "--seed: '-1' must be a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(train({"--unknown"}), "unknown: --unknown");
  EXPECT_EQ(train({"--loss", "none", "--gradients"}),
            "ortc: error: --gradients needs a loss, and --loss none compiles the forward part only\n");
  EXPECT_EQ(run({"model.onnx"}), "ortc: error: -o DIR is missing: the folder of the artifact\n");
}
