// --accumulate: updates as of larger batches, exact resumption, gradients that stay out of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>

#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class AccumulateTest : public testing::Test {
protected:
  void compile(const std::string &name, const std::string &batch, const std::vector<std::string> &more) {
    std::vector<std::string> arguments{
        "train",         entry.model(), "-o",  folder / name, "--shape", "batch=" + batch, "--optimizer",
        "adamw:lr=0.02", "--clip-norm", "0.5", "--target",    "native",  "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
  }
  void train(const std::string &name, const std::string &save, int steps,
             const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{
        "run",     folder / name,         "--data", entry.data(),  "--no-shuffle",
        "--steps", std::to_string(steps), "--save", folder / save, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
  }

  TemporaryFolder folder;
  ZooEntry entry{"mlp-digits"}; // 5 batches of 64
};

TEST_F(AccumulateTest, FourQuartersMakeABatch) {
  compile("quarters", "16", {"--accumulate", "4"});
  compile("whole", "64", {});
  train("quarters", "q.safetensors", 20);
  train("whole", "w.safetensors", 5);
  auto quarters = loadValues(folder / "q.safetensors"), whole = loadValues(folder / "w.safetensors");
  EXPECT_EQ(valuesOf(quarters, "step").data, (std::vector<double>{5})); // updates
  ASSERT_FALSE(whole.empty());
  for (const auto &[name, values] : whole) {
    ASSERT_EQ(valuesOf(quarters, name).shape, values.shape) << name;
    for (size_t i = 0; i < values.data.size(); ++i)
      ASSERT_NEAR(quarters[name].data[i], values.data[i], 1e-6) << name << " " << i;
  }
  EXPECT_EQ(valuesOf(quarters, "0.weight.accumulated").data, std::vector<double>(64 * 64, 0));
}

TEST_F(AccumulateTest, NothingChangesBeforeTheUpdate) {
  compile("a", "16", {"--accumulate", "4"});
  train("a", "none.safetensors", 0);
  train("a", "three.safetensors", 3);
  auto before = loadValues(folder / "none.safetensors"), after = loadValues(folder / "three.safetensors");
  for (const char *name : {"0.weight", "0.weight.exp_avg"})
    EXPECT_EQ(valuesOf(before, name).data, valuesOf(after, name).data) << name;
  EXPECT_NE(valuesOf(before, "0.weight.accumulated").data, valuesOf(after, "0.weight.accumulated").data);
}

TEST_F(AccumulateTest, ResumesInTheMiddleOfAGroup) {
  compile("a", "16", {"--accumulate", "4"});
  train("a", "whole.safetensors", 20, {"--lr-schedule", "cosine:total=20"});
  train("a", "first.safetensors", 7, {"--lr-schedule", "cosine:total=20"});
  train("a", "second.safetensors", 13, {"--load", folder / "first.safetensors"});
  EXPECT_TRUE(readFile(folder / "whole.safetensors") == readFile(folder / "second.safetensors"));
}

/// Gradients and update are the host's own loop: what accumulates is left alone.
TEST_F(AccumulateTest, TheUpdateEntryAppliesJustItsGradients) {
  compile("a", "16", {"--accumulate", "4", "--gradients"});
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  Session session(folder / "a");
  double loss = 0;
  session.writeSlice(*data, 0);
  ASSERT_EQ(ortc_accumulate_step(session.get(), &loss), ORTC_OK) << session.message();
  auto before = session.readPersistent();
  ASSERT_EQ(ortc_gradients_step(session.get(), &loss), ORTC_OK);
  ASSERT_EQ(ortc_update_step(session.get()), ORTC_OK);
  auto after = session.readPersistent();
  EXPECT_TRUE(before["0.weight.accumulated"] == after["0.weight.accumulated"]);
  EXPECT_FALSE(before["0.weight"] == after["0.weight"]);
}

/// Batch norm normalises every slice by itself and moves its running statistics with each.
TEST_F(AccumulateTest, BatchNormSeesEverySlice) {
  ZooEntry residual("resnet-tiny");
  std::vector<std::string> flags{"train", residual.model(), "--shape", "batch=8", "--batch-norm",
                                 "train", "--target",       "native",  "--quiet"};
  auto compileAs = [&](const std::string &name, const std::vector<std::string> &more) {
    std::vector<std::string> arguments(flags);
    arguments.insert(arguments.end(), {"-o", folder / name});
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
  };
  auto save = [&](const std::string &name, const std::string &steps, const std::string &file) {
    mustRun({"run", folder / name, "--data", residual.data(), "--no-shuffle", "--steps", steps, "--save",
             folder / file, "--quiet"});
    return loadValues(folder / file);
  };
  constexpr double kRate = 0.5;
  compileAs("pairs", {"--optimizer", "sgd:lr=0.5", "--accumulate", "2"});
  compileAs("still", {"--optimizer", "sgd:lr=0", "--gradients"});
  auto pairs = save("pairs", "2", "pairs.safetensors"), before = save("still", "0", "before.safetensors"),
       moved = save("still", "2", "moved.safetensors"); // the statistics alone

  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(residual.data(), data).isOk());
  Session session(folder / "still");
  std::map<std::string, std::vector<double>> sums;
  for (size_t slice : {0, 1}) {
    session.writeSlice(*data, slice);
    ASSERT_EQ(ortc_gradients_step(session.get(), nullptr), ORTC_OK) << session.message();
    for (const auto &[name, values] : before) {
      std::vector<float> gradient(values.data.size());
      if (ortc_read_gradient(session.get(), name.c_str(), gradient.data(), gradient.size() * sizeof(float)) !=
          ORTC_OK)
        continue; // a statistic
      sums[name].resize(gradient.size());
      for (size_t i = 0; i < gradient.size(); ++i)
        sums[name][i] += gradient[i];
    }
  }
  unsigned statistics = 0;
  for (const auto &[name, values] : before) {
    if (name == "step" || name == "lr")
      continue;
    bool isTrained = sums.count(name);
    statistics += !isTrained && values.data != valuesOf(moved, name).data;
    ASSERT_EQ(valuesOf(pairs, name).shape, values.shape) << name;
    for (size_t i = 0; i < values.data.size(); ++i)
      ASSERT_NEAR(pairs[name].data[i],
                  isTrained ? values.data[i] - kRate * sums[name][i] / 2 : moved[name].data[i], 1e-6)
          << name;
  }
  EXPECT_GT(sums.size(), 20u);
  EXPECT_GT(statistics, 10u);
}

TEST_F(AccumulateTest, AnArtifactWithoutItHasNoSuchStep) {
  compile("a", "16", {});
  Session session(folder / "a");
  EXPECT_EQ(ortc_accumulate_step(session.get(), nullptr), ORTC_E_NOT_FOUND);
  EXPECT_EQ(runTool({"train", entry.model(), "--shape", "batch=16", "-o", folder / "b", "--accumulate", "0"})
                .status,
            2);
  EXPECT_EQ(runTool({"train", entry.model(), "--shape", "batch=16", "-o", folder / "b", "--loss", "none",
                     "--accumulate", "2"})
                .status,
            2);
}

} // namespace
