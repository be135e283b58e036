// --precision bf16: what it costs in accuracy, and that nothing else changes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class NarrowTest : public testing::TestWithParam<std::string> {
protected:
  NarrowTest() : entry(GetParam()) {}

  /// Compiles with AdamW.
  std::string compile(const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",       entry.model(), "-o",          folder / "artifact",
                                   "--precision", "bf16",        "--optimizer", entry.optimizers.at("adamw"),
                                   "--target",    "native",      "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return folder / "artifact";
  }
  /// Trains; the checkpoint. Losses are in NAME.jsonl.
  std::string train(const std::string &artifact, const std::string &name, int steps,
                    const std::vector<std::string> &more = {}) {
    std::string saved = folder / (name + ".safetensors");
    std::vector<std::string> flags{"run",          artifact,    "--data",
                                   entry.data(),   "--steps",   std::to_string(steps),
                                   "--no-shuffle", "--metrics", folder / (name + ".jsonl"),
                                   "--save",       saved,       "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return saved;
  }

  TemporaryFolder folder;
  ZooEntry entry;
};

class NarrowCurveTest : public NarrowTest {};

/// Over 300 steps losses stay as near to those of float32 as torch.autocast's do (test/precision/make-curves.py):
/// 1.5 times its distance, the largest of four runs, since two ways of rounding drift apart by chance.
TEST_P(NarrowCurveTest, StaysAsNearAsAutocast) {
  nlohmann::json curves = nlohmann::json::parse(readFile(sourcePath("precision/curves.json")))[GetParam()];
  std::vector<double> wanted = curves["f32"], apart = curves["bf16"];
  train(compile(), "run", static_cast<int>(wanted.size()));
  std::vector<double> losses = loadLosses(folder / "run.jsonl");
  ASSERT_EQ(losses.size(), wanted.size());
  double sum = 0, limit = 1.5 * *std::max_element(apart.begin(), apart.end());
  for (size_t i = 0; i < losses.size(); ++i) {
    ASSERT_TRUE(std::isfinite(losses[i]));
    sum += std::fabs(losses[i] - wanted[i]);
  }
  double distance = sum / static_cast<double>(losses.size());
  EXPECT_LE(distance, limit);
  EXPECT_GT(distance, limit / 100) << "nothing is rounded";
  std::printf("%s: %.2e from float32, at most %.2e\n", GetParam().c_str(), distance, limit);
}

INSTANTIATE_TEST_SUITE_P(Zoo, NarrowCurveTest,
                         testing::Values("bert-tiny", "gpt2-tiny", "resnet-tiny", "unet", "mlp-mixer-tiny",
                                         "gru-forecast"),
                         [](const auto &info) { return caseName(info.param); });

class NarrowBitsTest : public NarrowTest {};

/// Parameters and moments are float32 as ever, and a run in two parts ends where a whole one does.
TEST_P(NarrowBitsTest, DoNotDependOnThreadsOrPauses) {
  std::string artifact = compile({"--max-workers", "4"});
  std::string whole = train(artifact, "whole", 4, {"--threads", "1"});
  for (const char *threads : {"2", "4"})
    EXPECT_EQ(readTensors(train(artifact, threads, 4, {"--threads", threads})), readTensors(whole))
        << threads;
  std::string half = train(artifact, "half", 2);
  EXPECT_EQ(readTensors(train(artifact, "rest", 2, {"--load", half})), readTensors(whole));
  for (const auto &[name, values] : loadValues(whole))
    EXPECT_NE(values.type, host::DataType::BFloat16) << name;
}

/// What is exported is a model in float32 like any other.
TEST_P(NarrowBitsTest, AreExported) {
  std::string artifact = compile();
  std::string saved = train(artifact, "run", 2);
  mustRun({"export", artifact, "--load", saved, "-o", folder / "e.onnx", "--quiet"});
  mustRun(
      {"predict", artifact, "--data", entry.data(), "--load", saved, "-o", folder / "narrow.npz", "--quiet"});
  std::vector<std::string> flags{"train",    folder / "e.onnx", "-o",     folder / "wide",
                                 "--target", "native",          "--quiet"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  mustRun(flags);
}

INSTANTIATE_TEST_SUITE_P(Zoo, NarrowBitsTest,
                         testing::Values("lenet", "mobilenetv2-tiny", "gpt2-tiny", "lstm-dynamo"),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
