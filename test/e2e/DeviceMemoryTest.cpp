// What a plan says of a device's memory is what a session takes there, counted by the driver's stand-in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "compiler/artifact/ArtifactReader.h"
#include "ortc/device.h"
#include "test/e2e/Device.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class DeviceMemoryTest : public testing::TestWithParam<std::string> {
protected:
  DeviceMemoryTest() : entry(GetParam()) {}

  /// Runs `train` or `plan` for sm_90. `budget` 0: none.
  Outcome compile(std::vector<std::string> command, uint64_t budget) {
    command.insert(command.end(), {"--optimizer", entry.optimizers.at("adamw"), "--target", "sm_90"});
    command.insert(command.end(), entry.flags.begin(), entry.flags.end());
    if (budget > 0)
      command.insert(command.end(), {"--memory-budget", std::to_string(budget)});
    return runTool(command);
  }

  /// Bytes of the four regions and of the status, each beginning at a multiple of what the device library aligns to;
  /// they are one allocation, which drivers (and the emulator) make in whole granules.
  static uint64_t sumOfRegions(const std::string &artifact) {
    constexpr uint64_t kAlignment = 256, kGranule = 512;
    auto manifest = nlohmann::json::parse(readFile(artifact + "/manifest.json"));
    auto read = artifact::readArtifactFile(artifact + "/model.ortc");
    EXPECT_TRUE(read) << read.getStatus().getMessage();
    uint64_t sum = 0;
    for (uint64_t bytes :
         {manifest["memory"]["constants"].get<uint64_t>(), manifest["memory"]["persistent"].get<uint64_t>(),
          transientOf(artifact), read ? read->ioBytes : 0, uint64_t(sizeof(ortc_device_status))})
      sum += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return (sum + kGranule - 1) / kGranule * kGranule;
  }

  /// The most memory that was allocated at a time while the artifact was trained.
  uint64_t countAllocated(const std::string &artifact) {
    EnvironmentVariable processor("ORTC_EMULATOR_SM", "90"), statistics("ORTC_EMULATOR_STATS", "1");
    Outcome outcome =
        runTool({"run", artifact, "--data", entry.data(), "--steps", "1", "--device", "cuda", "--quiet"});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    std::smatch found;
    bool isThere = std::regex_search(outcome.errors, found, std::regex("(\\d+) bytes allocated at most"));
    EXPECT_TRUE(isThere) << outcome.errors;
    return isThere ? std::stoull(found[1]) : 0;
  }

  TemporaryFolder folder;
  ZooEntry entry;
};

TEST_P(DeviceMemoryTest, SessionsTakeWhatThePlanSays) {
  std::string whole = folder / "whole", narrow = folder / "narrow", report = folder / "plan.json";
  Outcome outcome = compile({"train", entry.model(), "-o", whole, "--quiet"}, 0);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  uint64_t all = transientOf(whole);
  EXPECT_EQ(countAllocated(whole), sumOfRegions(whole));

  uint64_t budget = all * 3 / 4;
  outcome = compile({"train", entry.model(), "-o", narrow, "--quiet"}, budget);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_LE(transientOf(narrow), budget);
  EXPECT_EQ(countAllocated(narrow), sumOfRegions(narrow));

  outcome = compile({"plan", entry.model()}, budget);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  for (const char *certificate : {"no placement of this order is below", "above what every order needs"})
    EXPECT_NE(outcome.text.find(certificate), std::string::npos) << certificate << " is not in\n"
                                                                 << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(Zoo, DeviceMemoryTest, testing::Values("bert-tiny", "gpt2-tiny", "unet"),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
