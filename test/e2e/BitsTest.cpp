// What must not change a bit: interruption, the number of threads, and cutting a step between gradients and update.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-bits [gtest flags]; the models are zoo entries that together hold every kind of kernel and
// state: dense layers, convolutions with pools, depthwise ones with running statistics, embeddings,
// attention.
#include <gtest/gtest.h>

#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class BitsTest : public testing::TestWithParam<const char *> {
protected:
  static constexpr int kHalf = 7;

  BitsTest() : entry(GetParam()), artifact(folder / "artifact") {
    std::vector<std::string> arguments{
        "train",       entry.model(),   "-o", artifact,   "--optimizer", entry.optimizers["adamw"],
        "--gradients", "--max-workers", "4",  "--target", "native",      "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    mustRun(arguments);
  }

  /// Trains with shuffled data and returns the tensors of the checkpoint.
  std::string train(const std::string &name, int steps, const std::string &threads,
                    const std::string &load = "") {
    std::vector<std::string> arguments{
        "run",    artifact,      "--data",    entry.data(), "--steps",   std::to_string(steps),
        "--seed", "3",           "--threads", threads,      "--metrics", folder / (name + ".jsonl"),
        "--save", folder / name, "--quiet"};
    if (!load.empty())
      arguments.insert(arguments.end(), {"--load", folder / load});
    mustRun(arguments);
    return readTensors(folder / name);
  }

  void sameForEveryThreadCount() {
    std::string one = train("one", kHalf, "1");
    EXPECT_FALSE(one.empty());
    EXPECT_TRUE(one == train("two", kHalf, "2")) << "2 threads";
    EXPECT_TRUE(one == train("four", kHalf, "4")) << "4 threads";
    EXPECT_EQ(loadLosses(folder / "one.jsonl"), loadLosses(folder / "four.jsonl"));
  }

  void sameAfterResuming() {
    std::string whole = train("whole", 2 * kHalf, "2");
    train("first", kHalf, "2");
    std::string resumed = train("second", kHalf, "2", "first");
    EXPECT_TRUE(whole == resumed);
    auto losses = loadLosses(folder / "first.jsonl"), rest = loadLosses(folder / "second.jsonl");
    losses.insert(losses.end(), rest.begin(), rest.end());
    EXPECT_EQ(losses, loadLosses(folder / "whole.jsonl"));
    EXPECT_EQ(losses.size(), size_t(2 * kHalf));
  }

  void sameInTwoSegments() {
    std::unique_ptr<engine::DataSource> data;
    ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
    Session fused(artifact), cut(artifact);
    expectSameInTwoSegments(fused, cut, *data, entry.steps);
  }

  TemporaryFolder folder;
  ZooEntry entry;
  std::string artifact;
};

} // namespace

/// One test a model: compiling is the expensive part.
TEST_P(BitsTest, SameForThreadsResumptionAndSegments) {
  sameForEveryThreadCount();
  sameAfterResuming();
  sameInTwoSegments();
}

INSTANTIATE_TEST_SUITE_P(Bits, BitsTest,
                         testing::Values("mlp-digits", "lenet", "mobilenetv2-tiny", "dlrm-tiny", "gpt2-tiny",
                                         "gru-forecast"),
                         [](const auto &info) { return caseName(info.param); });
