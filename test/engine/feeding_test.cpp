// Training on shards: resumed, shared by processes, and stopped by labels that are out of range.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <csignal>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/data/writers.h"
#include "engine/training/apply.h"
#include "engine/training/run.h"
#include "test/engine/data_files.h"
#include "test/runtime/TestArtifact.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class FeedingTest : public testing::Test {
protected:
  FeedingTest() {
    artifact = folder / "model.ortc";
    ortc::test::writeTestArtifact(artifact);
    for (int shard = 0; shard < 3; ++shard) // of 10, 11 and 12 samples
      write("s" + std::to_string(shard) + ".npz", 10 + shard, 50 * shard);
  }
  template <typename T> static std::vector<uint8_t> toBytes(const std::vector<T> &values) {
    auto first = reinterpret_cast<const uint8_t *>(values.data());
    return {first, first + values.size() * sizeof(T)};
  }
  std::string write(const std::string &name, int64_t samples, int64_t first, int64_t lastLabel = 1) {
    std::vector<float> x;
    std::vector<int64_t> labels;
    for (int64_t i = first; i < first + samples; ++i) {
      for (int64_t k = 0; k < 3; ++k)
        x.push_back(float((i * 7 + k * 5) % 11) / 8 - 0.5f);
      labels.push_back(i % 3 == 0);
    }
    labels.back() = lastLabel;
    std::string path = folder / name;
    EXPECT_TRUE(writeNpz(path, {{"x", DataType::Float32, {samples, 3}, toBytes(x)},
                                {"label", DataType::Int64, {samples}, toBytes(labels)}})
                    .isOk());
    return path;
  }
  TrainOptions makeTrain(int64_t steps) {
    TrainOptions options;
    options.artifact = artifact;
    options.data = folder / "s*.npz";
    options.steps = steps;
    options.quiet = true;
    options.threads = 1;
    options.seed = 3;
    return options;
  }
  static void expectOk(const Status &status) { ASSERT_TRUE(status.isOk()) << status.getMessage(); }

  TemporaryFolder folder;
  std::string artifact;
  std::sig_atomic_t interrupted = 0;
};

} // namespace

TEST_F(FeedingTest, ResumedInTheMiddleOfShardsGivesTheSameBits) {
  for (int64_t cut : {1, 3, 8, 11}) { // an epoch has 8 steps
    TrainOptions whole = makeTrain(20), first = makeTrain(cut), second = makeTrain(20 - cut);
    whole.save = folder / "whole.safetensors";
    first.save = second.load = folder / "first.safetensors";
    second.save = folder / "second.safetensors";
    second.seed.reset();
    expectOk(train(whole, interrupted));
    expectOk(train(first, interrupted));
    expectOk(train(second, interrupted));
    EXPECT_EQ(readFile(second.save), readFile(whole.save)) << cut;
  }
}

TEST_F(FeedingTest, OtherProcessesMakeAnotherEpoch) {
  TrainOptions first = makeTrain(2), second = makeTrain(1);
  first.world = 2;
  first.rank = 1;
  first.save = second.load = folder / "first.safetensors";
  expectOk(train(first, interrupted));
  EXPECT_NE(readFile(first.save).find("\"run.world\":\"2\""), std::string::npos);
  second.quiet = false;
  testing::internal::CaptureStderr();
  expectOk(train(second, interrupted));
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(
      text.find("the data are shared by 1 processes but the checkpoint was made by 2: the next epoch begins"),
      std::string::npos)
      << text;
  first.world = 9;
  first.load.clear();
  EXPECT_EQ(train(first, interrupted).getMessage(),
            first.data + ": an epoch has 8 steps, fewer than the 9 processes of --world");
}

/// The last label of the second shard, in training and in evaluation.
TEST_F(FeedingTest, SaysWhereAnIndexOutOfRangeIs) {
  std::string path = write("s1.npz", 11, 50, 7);
  size_t at = readFile(path).rfind(bytesOf(int64_t(7)));
  std::string place =
      "); it is from sample 10 of " + path + ", element 0 of its 'label', at byte " + std::to_string(at);
  for (bool shuffles : {false, true}) {
    TrainOptions options = makeTrain(8);
    options.shuffle = shuffles;
    Status status = train(options, interrupted);
    EXPECT_EQ(status.getCode(), ExitCode::Failed);
    EXPECT_EQ(
        status.getMessage().find("the train step failed: index 7 in 'label' is out of range [0, 2) (step "),
        0u)
        << status.getMessage();
    EXPECT_TRUE(status.getMessage().ends_with(place)) << status.getMessage();
  }
  ApplyOptions options;
  options.artifact = artifact;
  options.data = folder / "s*.npz";
  options.threads = 1;
  options.quiet = true;
  Status status = evaluateData(options);
  EXPECT_TRUE(status.getMessage().ends_with("(slice 5 of " + options.data + place)) << status.getMessage();
}
