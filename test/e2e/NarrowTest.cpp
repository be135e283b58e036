// --precision bf16 and f16: what they cost in accuracy, and that nothing else changes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// An entry of the zoo that is compiled with narrow products.
class Narrow {
public:
  explicit Narrow(const std::string &name) : entry(name) {}

  /// Compiles with AdamW; `more` may have another precision.
  std::string compile(const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{
        "train",    entry.model(), "-o",     folder / "artifact", "--optimizer", entry.optimizers.at("adamw"),
        "--target", "native",      "--quiet"};
    if (std::find(more.begin(), more.end(), "--precision") == more.end())
      flags.insert(flags.end(), {"--precision", "bf16"});
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

protected:
  TemporaryFolder folder;
  ZooEntry entry;
};

class NarrowTest : public Narrow, public testing::TestWithParam<std::string> {
protected:
  NarrowTest() : Narrow(GetParam()) {}
};

using Curve = std::tuple<std::string, std::string>; // entry, precision

class NarrowCurveTest : public Narrow, public testing::TestWithParam<Curve> {
protected:
  NarrowCurveTest() : Narrow(std::get<0>(GetParam())) {}
};

/// Over 300 steps losses stay as near to those of float32 as torch.autocast's do (test/precision/make-curves.py), with
/// GradScaler where it is float16: 1.5 times its distance, the largest of four runs, since two ways of rounding drift
/// apart by chance.
TEST_P(NarrowCurveTest, StaysAsNearAsAutocast) {
  auto [name, precision] = GetParam();
  nlohmann::json curves = nlohmann::json::parse(readFile(sourcePath("precision/curves.json")))[name];
  std::vector<double> wanted = curves["f32"], apart = curves[precision];
  std::vector<std::string> flags{"--precision", precision};
  if (precision == "f16")
    flags.insert(flags.end(), {"--loss-scale", "dynamic"});
  train(compile(flags), "run", static_cast<int>(wanted.size()));
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
  std::printf("%s, %s: %.2e from float32, at most %.2e\n", name.c_str(), precision.c_str(), distance, limit);
}

INSTANTIATE_TEST_SUITE_P(Zoo, NarrowCurveTest,
                         testing::Combine(testing::Values("bert-tiny", "gpt2-tiny", "resnet-tiny", "unet",
                                                          "mlp-mixer-tiny", "gru-forecast"),
                                          testing::Values("bf16", "f16")),
                         [](const auto &info) {
                           return caseName(std::get<0>(info.param) + "-" + std::get<1>(info.param));
                         });

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
    EXPECT_NE(values.type, DataType::BFloat16) << name;
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

/// Scale and skipped steps are those of torch.amp.GradScaler (test/precision/make-scaler.py) over 2,000 steps in twenty
/// runs, which go on from checkpoints.
TEST(LossScaleTest, MovesAsGradScalerDoes) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  std::string artifact = folder / "artifact", data = sourcePath("precision/scaler.npz");
  mustRun({"train", entry.model(), "-o", artifact, "--loss", "cross_entropy", "--shape", "batch=8",
           "--optimizer", "sgd:lr=0.01,momentum=0.9", "--loss-scale",
           "dynamic:init=1024,growth=2,backoff=0.5,interval=10", "--target", "native", "--quiet"});
  nlohmann::json rows =
      nlohmann::json::parse(readFile(sourcePath("precision/scaler.json")))["steps, scale, skipped"];
  ASSERT_EQ(rows.size(), 20u);
  std::string saved = folder / "saved.safetensors", before;
  uint64_t skipped = 0;
  for (const nlohmann::json &row : rows) {
    std::vector<std::string> flags{"run", artifact, "--data", data,        "--no-shuffle",    "--steps",
                                   "100", "--save", saved,    "--metrics", folder / "m.jsonl"};
    if (!before.empty())
      flags.insert(flags.end(), {"--load", before});
    Outcome outcome = mustRun(flags);
    before = saved;
    // The metrics have it after every step, the last line what this run skipped.
    nlohmann::json last;
    std::istringstream lines(readFile(folder / "m.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (nlohmann::json step = nlohmann::json::parse(line); step.contains("loss"))
        last = step;
    EXPECT_EQ(last["step"], row[0]);
    EXPECT_EQ(last["loss_scale"].get<float>(), row[1].get<float>()) << row; // the shortest text of a float
    EXPECT_EQ(last["skipped"], row[2].get<uint64_t>()) << row;
    std::string count = std::to_string(row[2].get<uint64_t>() - skipped);
    EXPECT_NE(outcome.text.find(", " + count + " update"), std::string::npos) << outcome.text;
    skipped = row[2];
    auto tensors = loadValues(saved);
    EXPECT_EQ(valuesOf(tensors, "loss_scale").data.at(0), row[1].get<double>()) << row;
    EXPECT_EQ(valuesOf(tensors, "loss_scale.skipped").bits.at(0), row[2].get<uint64_t>()) << row;
    for (double value : valuesOf(tensors, "0.weight").data)
      ASSERT_TRUE(std::isfinite(value)) << row;
  }
}

/// A scale that is far too large for float16 gets smaller until gradients are finite, and nothing is lost meanwhile.
TEST(LossScaleTest, ComesDownToWhatFloatSixteenHolds) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  std::vector<std::string> flags{"train",         entry.model(), "-o",     folder / "a",   "--optimizer",
                                 "adamw:lr=0.01", "--precision", "f16",    "--loss-scale", "dynamic:init=1e9",
                                 "--target",      "native",      "--quiet"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  mustRun(flags);
  mustRun({"run", folder / "a", "--data", entry.data(), "--no-shuffle", "--steps", "60", "--metrics",
           folder / "m.jsonl", "--save", folder / "a.safetensors", "--quiet"});
  auto tensors = loadValues(folder / "a.safetensors");
  uint64_t skipped = valuesOf(tensors, "loss_scale.skipped").bits.at(0);
  EXPECT_GE(skipped, 3u);
  EXPECT_LE(skipped, 20u);
  EXPECT_EQ(valuesOf(tensors, "loss_scale").data.at(0), double(float(1e9)) / double(uint64_t(1) << skipped));
  std::vector<double> losses = loadLosses(folder / "m.jsonl");
  EXPECT_EQ(losses.at(0), losses.at(5)) << "a skipped step changed something"; // the first batch comes round
  EXPECT_LT(losses.at(55), 0.7 * losses.at(0));
}

/// A number is a scale that stays. Gradients are divided by it: of a power of two no bit remains.
TEST(LossScaleTest, APowerOfTwoChangesNoBit) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  std::vector<std::string> saved;
  for (std::vector<std::string> scale : {std::vector<std::string>{}, {"--loss-scale", "4096"}}) {
    std::string name = folder / std::to_string(saved.size());
    std::vector<std::string> flags{"train",      entry.model(), "-o",     name,     "--optimizer",
                                   "sgd:lr=0.1", "--target",    "native", "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), scale.begin(), scale.end());
    mustRun(flags);
    mustRun({"run", name, "--data", entry.data(), "--no-shuffle", "--steps", "5", "--save",
             name + ".safetensors", "--quiet"});
    saved.push_back(name + ".safetensors");
  }
  auto plain = loadValues(saved[0]), scaled = loadValues(saved[1]);
  EXPECT_EQ(valuesOf(plain, "0.weight").data, valuesOf(scaled, "0.weight").data);
  EXPECT_EQ(valuesOf(scaled, "loss_scale").data.at(0), 4096);
}

/// Without a scale, float16 gets a warning.
TEST(LossScaleTest, FloatSixteenWithoutOneIsWarnedOf) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  std::vector<std::string> flags{"train",       entry.model(), "-o",       folder / "a",
                                 "--precision", "f16",         "--target", "native"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  Outcome outcome = mustRun(flags);
  EXPECT_NE((outcome.text + outcome.errors).find("--loss-scale dynamic"), std::string::npos)
      << outcome.errors;
}

} // namespace
