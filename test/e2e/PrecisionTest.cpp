// --precision f64: everything in float64, numbers as exact as the references are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// References of tensors are float64 rounded to float32, which is half a unit in the last place: 6e-8.
constexpr double kRounded = 6.5e-8;
/// The file has the momentum of running statistics, 0.9, as float32: what a step adds, a tenth, is off by 2.4e-7.
constexpr double kStatistics = 2.4e-7 + kRounded;
/// Constants of the module, like 1e-5 or the root of two, stand in the file as float32, too.
constexpr double kLoss = 1e-9;
/// Here some, like 0.7 and 1.2, are weights in the loss itself.
constexpr double kLossInGraph = 6e-8;

class PrecisionTest : public testing::TestWithParam<std::string> {
protected:
  PrecisionTest() : entry(GetParam()) {}

  std::vector<std::string> flagsFor(const std::string &model, const std::string &kind) {
    std::vector<std::string> flags{"train",       model,    "-o",          folder / kind,
                                   "--precision", "f64",    "--optimizer", entry.optimizers.at(kind),
                                   "--target",    "native", "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  /// Trains as the recipe says; the checkpoint.
  std::string train(const std::string &kind) {
    std::string saved = folder / (kind + ".safetensors");
    mustRun(flagsFor(entry.model(), kind));
    mustRun({"run", folder / kind, "--data", entry.data(), "--no-shuffle", "--steps",
             std::to_string(entry.steps), "--metrics", folder / (kind + ".jsonl"), "--save", saved,
             "--quiet"});
    return saved;
  }

  void expectReference();

  TemporaryFolder folder;
  ZooEntry entry;
  std::vector<std::string> more; ///< flags
};

/// Whatever an optimizer makes of noise in float32 gradients is left out here: the parameters agree to the
/// last digit that references have.
void PrecisionTest::expectReference() {
  auto golden = loadValues(entry.folder + "/golden.npz");
  double worstLoss = 0, worst = 0;
  for (const char *kind : {"sgd", "adamw"}) {
    auto saved = loadValues(train(kind));
    std::vector<double> losses = loadLosses(folder / (std::string(kind) + ".jsonl")),
                        wanted = valuesOf(golden, std::string("loss/") + kind).data;
    ASSERT_EQ(losses.size(), wanted.size());
    ASSERT_EQ(losses.size(), size_t(entry.steps));
    for (size_t i = 0; i < losses.size(); ++i) {
      ASSERT_TRUE(std::isfinite(losses[i]));
      worstLoss = std::max(worstLoss, std::fabs(losses[i] - wanted[i]) / std::fabs(wanted[i]));
    }
    std::string prefix = std::string(kind) == "sgd" ? "param/" : "adamw/";
    size_t compared = 0;
    for (const auto &[key, values] : golden) {
      if (!key.starts_with(prefix))
        continue;
      const Values &got = valuesOf(saved, key.substr(prefix.size()));
      ASSERT_EQ(got.shape, values.shape) << key;
      double largest = 1e-6, off = 0;
      for (size_t i = 0; i < values.data.size(); ++i) {
        ASSERT_TRUE(std::isfinite(got.data[i])) << key;
        largest = std::max(largest, std::fabs(values.data[i]));
        off = std::max(off, std::fabs(got.data[i] - values.data[i]));
      }
      bool isStatistic = key.find(".running_") != std::string::npos;
      EXPECT_LE(off, (isStatistic ? kStatistics : kRounded) * largest) << key;
      worst = std::max(worst, off / largest);
      ++compared;
    }
    EXPECT_GT(compared, 0u);
  }
  EXPECT_LE(worstLoss, GetParam() == "loss-in-graph" ? kLossInGraph : kLoss);
  std::printf("%s: losses within %.1e, parameters within %.1e\n", GetParam().c_str(), worstLoss, worst);
}

TEST_P(PrecisionTest, AgreesWithTheReference) { expectReference(); }

INSTANTIATE_TEST_SUITE_P(Zoo, PrecisionTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

/// Resumed, predicted and exported like any other.
class PrecisionCommandsTest : public PrecisionTest {};

TEST_P(PrecisionCommandsTest, TakeTheArtifact) {
  std::string saved = train("adamw"), artifact = folder / "adamw";
  mustRun({"run", artifact, "--data", entry.data(), "--load", saved, "--steps", "1", "--quiet"});
  mustRun({"predict", artifact, "--data", entry.data(), "-o", folder / "p.npz", "--quiet"});
  mustRun({"export", artifact, "--load", saved, "-o", folder / "e.onnx", "--quiet"});
  mustRun(flagsFor(folder / "e.onnx", "adamw")); // float32 weights again
}

INSTANTIATE_TEST_SUITE_P(Zoo, PrecisionCommandsTest, testing::Values("mlp-digits", "lenet", "gpt2-tiny"),
                         [](const auto &info) { return caseName(info.param); });

/// Attention in tiles of some queries, the last one with fewer.
class TiledAttentionTest : public PrecisionTest {};

TEST_P(TiledAttentionTest, AgreesWithTheReference) {
  more = {"--attention", "tiled:rows=7", "--dump-ir", folder / "ir"};
  expectReference();
  EXPECT_NE(readFile(folder / "ir/2-simplify.mlir").find("recompute carry"), std::string::npos) << "no tiles";
}

INSTANTIATE_TEST_SUITE_P(Zoo, TiledAttentionTest,
                         testing::Values("gpt2-tiny", "llama-tiny", "bert-tiny", "roberta-tiny",
                                         "vit-tiny-slim"),
                         [](const auto &info) { return caseName(info.param); });

/// Logits of some rows at a time.
class ChunkedHeadTest : public PrecisionTest {};

TEST_P(ChunkedHeadTest, AgreesWithTheReference) {
  more = {"--head-chunk", "5", "--dump-ir", folder / "ir"};
  expectReference();
  EXPECT_NE(readFile(folder / "ir/4-differentiate.mlir").find("recompute carry"), std::string::npos)
      << "no chunks";
}

INSTANTIATE_TEST_SUITE_P(Zoo, ChunkedHeadTest,
                         testing::Values("gpt2-tiny", "llama-tiny", "lenet", "mlp-digits"),
                         [](const auto &info) { return caseName(info.param); });

/// Where no label counts, the loss is no number and all gradients are zero, as in PyTorch.
TEST(ChunkedHeadLabelsTest, MayAllBeIgnored) {
  TemporaryFolder folder;
  ZooEntry entry("gpt2-tiny");
  engine::OutputArray tokens{"input_ids", DataType::Int64, {4, 16}, std::vector<uint8_t>(4 * 16 * 8)},
      label = tokens;
  label.name = "label";
  for (size_t i = 0; i < label.data.size(); i += 8) {
    const int64_t ignored = -100;
    std::memcpy(label.data.data() + i, &ignored, sizeof ignored);
  }
  ASSERT_TRUE(engine::writeNpz(folder / "data.npz", {tokens, label}).isOk());
  mustRun({"train", entry.model(), "-o", folder / "artifact", "--loss", "cross_entropy:axis=-1", "--shape",
           "batch=4,sequence=16", "--gradients", "--head-chunk", "16", "--target", "native", "--quiet"});
  mustRun({"gradients", folder / "artifact", "--data", folder / "data.npz", "-o", folder / "g.safetensors",
           "--quiet"});
  for (const auto &[name, values] : loadValues(folder / "g.safetensors"))
    for (double value : values.data)
      ASSERT_TRUE(name == "loss" ? std::isnan(value) : value == 0) << name;
}

} // namespace
