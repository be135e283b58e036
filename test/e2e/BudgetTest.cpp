// A memory budget is kept by what the artifact takes, and changes no bit of what is trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-budget [gtest flags]; one test for every zoo entry.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Every folder of test/zoo.
std::vector<std::string> listEntries() {
  std::vector<std::string> names;
  for (const auto &folder : std::filesystem::directory_iterator(sourcePath("zoo")))
    if (std::filesystem::exists(folder.path() / "recipe.json"))
      names.push_back(folder.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class BudgetTest : public testing::TestWithParam<std::string> {
protected:
  BudgetTest() : entry(GetParam()) {}

  std::vector<std::string> trainFlags(const std::string &artifact) const {
    std::vector<std::string> flags{"train",    entry.model(), "-o",
                                   artifact,   "--optimizer", entry.optimizers.at("adamw"),
                                   "--target", "native",      "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    return flags;
  }

  /// Compiles with a budget; where that is refused, with the smallest one that the message names. The budget used.
  uint64_t trainWithin(uint64_t budget, const std::string &artifact) {
    std::vector<std::string> flags = trainFlags(artifact);
    flags.insert(flags.end(), {"--memory-budget", std::to_string(budget)});
    Outcome outcome = runTool(flags);
    if (outcome.status == 2) {
      const std::string before = "the smallest possible budget is ";
      size_t at = outcome.errors.find(before);
      EXPECT_NE(at, std::string::npos) << outcome.errors;
      EXPECT_FALSE(std::filesystem::exists(artifact)) << "a refused budget leaves something behind";
      if (at == std::string::npos)
        return 0;
      uint64_t smallest = std::stoull(outcome.errors.substr(at + before.size()));
      EXPECT_GT(smallest, budget);
      budget = smallest;
      flags.back() = std::to_string(budget);
      outcome = runTool(flags);
    }
    EXPECT_EQ(outcome.status, 0) << "budget " << budget << ": " << outcome.errors;
    return budget;
  }

  /// The most that any entry of an artifact takes.
  static uint64_t transientOf(const std::string &artifact) {
    auto manifest = nlohmann::json::parse(readFile(artifact + "/manifest.json"));
    uint64_t most = 0;
    for (const auto &item : manifest["entries"])
      most = std::max(most, item["memory"]["transient"].get<uint64_t>());
    return most;
  }

  /// The tensors of the checkpoint after some steps.
  std::string train(const std::string &artifact) {
    std::string file = folder / "checkpoint";
    mustRun(
        {"run", artifact, "--data", entry.data(), "--steps", "5", "--seed", "3", "--save", file, "--quiet"});
    std::string bytes = readFile(file);
    uint64_t header = 0;
    if (bytes.size() > sizeof(header))
      std::memcpy(&header, bytes.data(), sizeof(header));
    return bytes.substr(std::min(bytes.size(), size_t(8 + header)));
  }

  TemporaryFolder folder;
  ZooEntry entry;
};

TEST_P(BudgetTest, IsKeptAndChangesNoBit) {
  std::string whole = folder / "whole";
  mustRun(trainFlags(whole));
  uint64_t all = transientOf(whole);
  std::string wanted = train(whole);
  ASSERT_FALSE(wanted.empty());
  for (uint64_t percent : {70, 40}) {
    std::string artifact = folder / std::to_string(percent);
    uint64_t budget = trainWithin(all * percent / 100, artifact);
    ASSERT_GT(budget, 0u);
    EXPECT_LE(transientOf(artifact), budget);
    EXPECT_LE(transientOf(artifact), all);
    EXPECT_TRUE(train(artifact) == wanted) << percent << " %: other bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Budget, BudgetTest, testing::ValuesIn(listEntries()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
