// What must not change a bit on a device: the order in which warps and blocks run, a host that does not wait,
// interruption, cutting a step between gradients and update, a memory budget.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-gpu-bits [gtest flags]; the driver is that of $ORTC_CUDA_DRIVER. The orders are those of the emulator.
#include <algorithm>
#include <gtest/gtest.h>

#include "test/e2e/Device.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Case = std::tuple<std::string, std::string>; // entry, precision

class DeviceBitsTest : public testing::TestWithParam<Case> {
protected:
  static constexpr int kHalf = 3;

  DeviceBitsTest() : entry(std::get<0>(GetParam())), artifact(folder / "artifact") {
    EXPECT_EQ(compile(artifact, {"--gradients"}).status, 0);
    EXPECT_TRUE(engine::openData(entry.data(), data).isOk());
  }

  Outcome compile(const std::string &path, const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{"train",       entry.model(),
                                       "-o",          path,
                                       "--optimizer", entry.optimizers["adamw"],
                                       "--target",    "sm_80",
                                       "--precision", std::get<1>(GetParam()),
                                       "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return runTool(arguments);
  }

  /// Trains with shuffled data and returns the tensors of the checkpoint; they are in `folder` by this name.
  std::string train(const std::string &name, int steps, const std::vector<std::string> &flags = {}) {
    return train(artifact, name, steps, flags);
  }
  std::string train(const std::string &path, const std::string &name, int steps,
                    const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{
        "run",        path,      "--data",   entry.data(), "--steps",   std::to_string(steps),      "--seed",
        "3",          "--quiet", "--device", "cuda",       "--metrics", folder / (name + ".jsonl"), "--save",
        folder / name};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
    return readTensors(folder / name);
  }
  std::vector<double> lossesOf(const std::string &name) { return loadLosses(folder / (name + ".jsonl")); }

  void sameInEveryOrder() {
    std::string wanted = train("forward", kHalf);
    ASSERT_FALSE(wanted.empty());
    for (const char *order : {"reverse", "random:7"}) {
      EnvironmentVariable variable("ORTC_EMULATOR_ORDER", order);
      EXPECT_TRUE(train(order, kHalf) == wanted) << order;
      EXPECT_EQ(lossesOf(order), lossesOf("forward")) << order;
    }
  }

  void sameAfterResuming() {
    std::string whole = train("whole", 2 * kHalf);
    train("first", kHalf);
    EXPECT_TRUE(train("second", kHalf, {"--load", folder / "first"}) == whole);
    auto losses = lossesOf("first"), rest = lossesOf("second");
    losses.insert(losses.end(), rest.begin(), rest.end());
    EXPECT_EQ(losses, lossesOf("whole"));
    EXPECT_EQ(losses.size(), size_t(2 * kHalf));
  }

  void sameInTwoSegments() {
    Device device;
    Session whole(artifact, &device.host), cut(artifact, &device.host);
    expectSameInTwoSegments(whole, cut, *data, entry.steps);
  }

  /// The work is done as late as can be: when somebody waits for it.
  void sameWhenNobodyWaits() {
    EnvironmentVariable late("ORTC_EMULATOR_LAZY", "1");
    Device device;
    Session waiting(artifact, &device.host), other(artifact, &device.host);
    for (int step = 0; step < entry.steps; ++step) {
      double loss = 0;
      waiting.writeSlice(*data, step);
      other.writeSlice(*data, step);
      ASSERT_EQ(ortc_train_step(waiting.get(), &loss), ORTC_OK) << waiting.message();
      ASSERT_EQ(ortc_train_step(other.get(), nullptr), ORTC_OK) << other.message();
    }
    EXPECT_EQ(waiting.readPersistent(), other.readPersistent());
  }

  void sameForEveryBudget() {
    std::string wanted = train("unbounded", kHalf);
    uint64_t all = transientOf(artifact), least = leastBudget();
    ASSERT_LE(least, all);
    for (uint64_t budget : {least, least + (all - least) / 2}) {
      std::string name = std::to_string(budget), path = folder / (name + "-artifact");
      Outcome outcome = compile(path, {"--gradients", "--memory-budget", name});
      ASSERT_EQ(outcome.status, 0) << outcome.errors;
      EXPECT_LE(transientOf(path), budget);
      EXPECT_TRUE(train(path, name, kHalf, {}) == wanted) << "budget " << budget << " of " << all;
      EXPECT_EQ(lossesOf(name), lossesOf("unbounded"));
    }
  }

  /// What a refusal names.
  uint64_t leastBudget() {
    std::string errors = compile(folder / "refused", {"--gradients", "--memory-budget", "1"}).errors;
    const std::string before = "the smallest budget found to be enough is ";
    size_t at = errors.find(before);
    EXPECT_NE(at, std::string::npos) << errors;
    return at == std::string::npos ? 0 : std::stoull(errors.substr(at + before.size()));
  }
  /// The most that any entry of an artifact takes.
  uint64_t transientOf(const std::string &path) {
    Device device;
    Session session(path, &device.host);
    ortc_entry_info info = ORTC_INIT(ortc_entry_info);
    uint64_t most = 0;
    for (uint32_t i = 0; ortc_entry_get(session.getProgram(), i, &info) == ORTC_OK; ++i)
      most = std::max(most, info.fixed_bytes + info.worker_bytes);
    return most;
  }

  TemporaryFolder folder;
  ZooEntry entry;
  std::string artifact;
  std::unique_ptr<engine::DataSource> data;
};

} // namespace

/// One test a model: compiling is the expensive part.
TEST_P(DeviceBitsTest, SameForOrdersWaitingResumptionSegmentsAndBudgets) {
  sameInEveryOrder();
  sameAfterResuming();
  sameInTwoSegments();
  sameWhenNobodyWaits();
  sameForEveryBudget();
}

static std::string nameOf(const testing::TestParamInfo<Case> &info) {
  auto [entry, precision] = info.param;
  return caseName(precision == "f32" ? entry : entry + "_" + precision);
}

INSTANTIATE_TEST_SUITE_P(Bits, DeviceBitsTest,
                         testing::Combine(testing::Values("mlp-digits", "lenet", "mobilenetv2-tiny",
                                                          "dlrm-tiny", "gpt2-tiny", "gru-forecast"),
                                          testing::Values("f32")),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Narrow, DeviceBitsTest,
                         testing::Combine(testing::Values("lenet", "gpt2-tiny", "gru-forecast"),
                                          testing::Values("bf16", "f16", "tf32")),
                         nameOf);
