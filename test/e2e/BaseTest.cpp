// --base: adapters beside weights that are stored as integers, against those of the PEFT library beside the same
// numbers (test/lora/base/make-base.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "support/Json.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Both sides compute in float32 with the same weights: five steps of sums of some hundred rounded numbers of about
/// one.
constexpr double kTolerance = 2e-6;

struct Format {
  std::string flag, golden;
};

class BaseTest : public testing::Test {
protected:
  std::string source(const std::string &name) const { return sourcePath("lora/base/" + name); }
  std::vector<std::string> trainFlags(const std::vector<std::string> &more) const {
    std::vector<std::string> flags{
        "train",         source("model.onnx"), "-o",     folder / "artifact", "--loss",
        "cross_entropy", "--target",           "native", "--optimizer",       "sgd:lr=0.02,momentum=0.9",
        "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  void compile(const std::vector<std::string> &more) {
    std::vector<std::string> flags{"--lora", "(word|query|value|wide|head).weight:rank=3,alpha=6"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(trainFlags(flags));
  }
  /// Steps from the adapters of PEFT; the checkpoint.
  std::string train(const std::vector<std::string> &more = {}, int steps = 5) {
    std::string saved = folder / "saved.safetensors";
    std::vector<std::string> flags{"run",
                                   folder / "artifact",
                                   "--data",
                                   source("data.npz"),
                                   "--steps",
                                   std::to_string(steps),
                                   "--no-shuffle",
                                   "--metrics",
                                   folder / "run.jsonl",
                                   "--save",
                                   saved,
                                   "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    std::filesystem::remove(folder / "run.jsonl");
    mustRun(flags);
    return saved;
  }
  std::string trainFromStart(const std::vector<std::string> &more = {}, int steps = 5) {
    std::vector<std::string> flags{"--load", source("start")};
    flags.insert(flags.end(), more.begin(), more.end());
    return train(flags, steps);
  }
  void expectLosses(const std::string &golden, double tolerance) {
    auto values = loadValues(source(golden));
    std::vector<double> losses = loadLosses(folder / "run.jsonl"), wanted = valuesOf(values, "loss").data;
    ASSERT_EQ(losses.size(), wanted.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], wanted[i], tolerance) << golden << " at step " << i;
  }
  void expectNear(const Values &got, const Values &wanted, const std::string &what) {
    ASSERT_EQ(got.data.size(), wanted.data.size()) << what;
    for (size_t i = 0; i < got.data.size(); ++i)
      ASSERT_NEAR(got.data[i], wanted.data[i], kTolerance) << what << " at " << i;
  }
  uint64_t constants() {
    return parseJson(readFile(folder / "artifact/manifest.json"))["memory"]["constants"].get<uint64_t>();
  }

  const Format formats[2] = {{"int8", "golden-int8.npz"}, {"int4:block=32", "golden-int4-32.npz"}};
  TemporaryFolder folder;
};

TEST_F(BaseTest, TrainsAsPeftDoes) {
  for (const Format &format : formats) {
    compile({"--base", format.flag});
    std::string saved = trainFromStart();
    expectLosses(format.golden, kTolerance);
    auto golden = loadValues(source(format.golden));
    mustRun({"export", folder / "artifact", "--load", saved, "--adapter", folder / "adapter", "--quiet"});
    auto written = loadValues(folder / "adapter/adapter_model.safetensors");
    size_t compared = 0;
    for (const auto &[key, values] : golden)
      if (key.starts_with("adapter/")) {
        expectNear(valuesOf(written, key.substr(8)), values, format.flag + " " + key);
        ++compared;
      }
    EXPECT_EQ(compared, written.size());
    // What is exported has the numbers that the integers stand for, and what the adapters add to them.
    std::string merged = folder / "merged.onnx";
    mustRun({"export", folder / "artifact", "--load", saved, "-o", merged, "--quiet"});
    mustRun({"train", merged, "-o", folder / "plain", "--loss", "none", "--target", "native", "--quiet"});
    mustRun({"predict", folder / "plain", "--data", source("data.npz"), "-o", folder / "p.npz", "--quiet"});
    expectNear(valuesOf(loadValues(folder / "p.npz"), "output"), valuesOf(golden, "output"), format.flag);
    mustRun({"predict", folder / "artifact", "--load", saved, "--data", source("data.npz"), "-o",
             folder / "q.npz", "--quiet"});
    expectNear(valuesOf(loadValues(folder / "q.npz"), "output"), valuesOf(golden, "output"), format.flag);
  }
}

/// Four bits and a float32 scale for 32 numbers: 0.15625 of float32. What is small is aligned to 64 bytes.
TEST_F(BaseTest, ConstantsAreSmall) {
  const uint64_t weight = 40 * 96 * 4;
  mustRun(trainFlags({"--lora", "word.weight:rank=3"}));
  uint64_t before = constants();
  mustRun(trainFlags({"--lora", "word.weight:rank=3", "--base", "int4:block=32"}));
  EXPECT_LE(constants(), before - weight + uint64_t(0.16 * double(weight)) + 128);
}

/// Rows of 96 numbers are filled up to 128: of 40 x 128, the smallest of the large weights, nothing stands in a plan.
/// Activations have 24 x 128 numbers at most, a panel of a weight 128 x 32.
TEST_F(BaseTest, NoWeightIsUnpackedWhole) {
  for (auto [base, precision] : {std::pair("int8", "f32"), std::pair("int4", "bf16")}) {
    compile({"--base", base, "--precision", precision, "--dump-buffers", folder / "buffers.csv",
             "--head-chunk", "2"});
    std::istringstream lines(readFile(folder / "buffers.csv"));
    std::string line;
    size_t count = 0;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream type(line.substr(line.rfind(',') + 1));
      int64_t elements = 1, size = 0;
      while (type >> size) {
        elements *= size;
        type.ignore(1, 'x');
      }
      EXPECT_LT(elements, 40 * 128) << line;
      ++count;
    }
    EXPECT_GT(count, 20u);
  }
}

TEST_F(BaseTest, ThreadsAndResumedRunsGiveTheSameBits) {
  compile({"--base", "int4", "--max-workers", "4"});
  std::string whole = readTensors(trainFromStart({"--threads", "1"}));
  for (const char *threads : {"2", "4"})
    EXPECT_TRUE(readTensors(trainFromStart({"--threads", threads})) == whole) << threads;
  std::string half = folder / "half.safetensors";
  std::filesystem::rename(trainFromStart({}, 2), half);
  EXPECT_TRUE(readTensors(train({"--load", half}, 3)) == whole);
}

/// The weights are rounded once more, to numbers of 8 bits; losses of bfloat16 are right to about 2^-8.
TEST_F(BaseTest, ComputesInBfloat16) {
  compile({"--base", formats[1].flag, "--precision", "bf16"});
  trainFromStart();
  expectLosses(formats[1].golden, 2e-2);
}

/// The head's loop over rows has the loop over panels in it; gradients of chunks are added up.
TEST_F(BaseTest, TrainsWithAChunkedHead) {
  compile({"--base", formats[0].flag, "--head-chunk", "2"});
  trainFromStart();
  expectLosses(formats[0].golden, kTolerance);
}

TEST_F(BaseTest, GradientsAreThoseOfDifferences) {
  std::vector<std::string> flags{"check",  source("model.onnx"),
                                 "--loss", "cross_entropy",
                                 "--lora", "(word|query|value|wide|head).weight:rank=3,alpha=6",
                                 "--base"};
  flags.emplace_back("int8");
  mustRun(flags);
  flags.back() = "int4";
  flags.insert(flags.end(), {"--against", "evaluator"});
  mustRun(flags);
}

TEST_F(BaseTest, RefusesWhatCannotBe) {
  struct Case {
    std::vector<std::string> flags;
    std::string message;
  };
  const std::string lora = "query.weight:rank=2";
  const Case cases[] = {
      {{"--base", "int4"}, "--base int4 needs --lora: weights beside adapters are quantised, and no others"},
      {{"--lora", lora, "--base", "int3"},
       "--base: the base is 'int3' but must be one of int8[:block=64], int4[:block=64]"},
      {{"--lora", lora, "--base", "int4:block=48"}, "block is 48 but must be a power of two from 32 to 4096"},
      {{"--lora", lora, "--base", "int4:block=0"}, "block is 0 but must be a power of two from 32 to 4096"},
      {{"--lora", lora, "--base", "int8:blocks=64"}, "base 'int8' has no option 'blocks'; it takes block"},
      {{"--lora", lora, "--base", "int8:block=128"},
       "--base int8:block=128: 'query.weight' has rows of 96 numbers, fewer than the 128 that quantising "
       "needs"},
      {{"--lora", lora, "--train", "query.weight", "--base", "int8"},
       "--base int8: 'query.weight' is trained, as --train query.weight names it"},
  };
  for (const Case &each : cases) {
    Outcome outcome = runTool(trainFlags(each.flags));
    EXPECT_EQ(outcome.status, 2) << each.message;
    EXPECT_NE(outcome.errors.find(each.message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "artifact")) << each.message;
  }
  std::string small = sourcePath("lora/model.onnx");
  Outcome filter =
      runTool({"train", small, "-o", folder / "artifact", "--lora", "mix.weight", "--base", "int8"});
  EXPECT_EQ(filter.status, 2);
  EXPECT_NE(filter.errors.find("'mix.weight' is the filter of a convolution"), std::string::npos)
      << filter.errors;
  Outcome narrow =
      runTool({"train", small, "-o", folder / "artifact", "--lora", "query.weight", "--base", "int8"});
  EXPECT_EQ(narrow.status, 2);
  EXPECT_NE(
      narrow.errors.find("'query.weight' has rows of 12 numbers, fewer than the 64 that quantising needs"),
      std::string::npos)
      << narrow.errors;
}

} // namespace
