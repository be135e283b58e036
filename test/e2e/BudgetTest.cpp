// A memory budget is kept by what the artifact takes, and changes no bit of what is trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-budget [gtest flags]; one test for every zoo entry.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class BudgetTest : public testing::TestWithParam<std::string> {
protected:
  BudgetTest() : entry(GetParam()) {}

  /// `where`: what of the compilation is kept, and what else is asked for.
  Outcome compile(const std::vector<std::string> &where, const std::string &target, uint64_t budget = 0) {
    std::vector<std::string> flags{"train",    entry.model(), "--optimizer", entry.optimizers.at("adamw"),
                                   "--target", target,        "--quiet"};
    flags.insert(flags.end(), where.begin(), where.end());
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    if (budget > 0)
      flags.insert(flags.end(), {"--memory-budget", std::to_string(budget)});
    return runTool(flags);
  }

  /// The smallest budget that the refusal of this one names.
  uint64_t refuse(const std::string &target, uint64_t budget) {
    std::string artifact = folder / "refused";
    Outcome outcome = compile({"-o", artifact}, target, budget);
    EXPECT_EQ(outcome.status, 2) << "budget " << budget << ": " << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(artifact)) << "a refused budget leaves something behind";
    const std::string before = "the smallest budget found to be enough is ";
    size_t at = outcome.errors.find(before);
    EXPECT_NE(at, std::string::npos) << outcome.errors;
    return at == std::string::npos ? 0 : std::stoull(outcome.errors.substr(at + before.size()));
  }

  /// The most that any entry of an artifact takes.
  static uint64_t transientOf(const std::string &artifact) {
    auto manifest = nlohmann::json::parse(readFile(artifact + "/manifest.json"));
    uint64_t most = 0;
    for (const auto &item : manifest["entries"])
      most = std::max(most, item["memory"]["transient"].get<uint64_t>());
    return most;
  }

  /// The same of a plan, without code; 0 where there is none.
  uint64_t plan(const std::string &target, uint64_t budget = 0) {
    std::string report = folder / "report.json";
    Outcome outcome = compile({"--compile-to", "place", "--report", report}, target, budget);
    EXPECT_EQ(outcome.status, 0) << "budget " << budget << ": " << outcome.errors;
    if (outcome.status != 0)
      return 0;
    auto figures = nlohmann::json::parse(readFile(report));
    uint64_t most = 0;
    for (const auto &item : figures["entries"])
      most = std::max(most, item["transient"].get<uint64_t>());
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
  Outcome outcome = compile({"-o", whole}, "native");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  uint64_t all = transientOf(whole), least = refuse("native", 1);
  std::string wanted = train(whole);
  ASSERT_FALSE(wanted.empty());
  ASSERT_GT(least, 1u);
  ASSERT_LE(least, all);
  for (uint64_t budget : {least, least + (all - least) / 2}) {
    std::string artifact = folder / std::to_string(budget);
    outcome = compile({"-o", artifact}, "native", budget);
    ASSERT_EQ(outcome.status, 0) << "budget " << budget << " of " << all << ": " << outcome.errors;
    EXPECT_LE(transientOf(artifact), budget);
    EXPECT_TRUE(train(artifact) == wanted) << "budget " << budget << " of " << all << ": other bits";
  }
}

/// A refused budget is searched for twice here, so not for every entry.
class SmallestBudgetTest : public BudgetTest {};

TEST_P(SmallestBudgetTest, IsRefusedAByteBelow) {
  uint64_t least = refuse("native", 1);
  ASSERT_GT(least, 1u);
  EXPECT_EQ(refuse("native", least - 1), least) << "a byte less is enough too";
}

/// What was possible when this was written still is. Per cent of the memory without a budget, for a fixed target:
/// long chains of activations can be computed again, a step whose largest kernel reads and writes most of it cannot.
TEST_P(BudgetTest, IsAsSmallAsItCanBe) {
  static const std::map<std::string, unsigned> kPercent = {
      {"autoencoder-conv", 60},
      {"bert-tiny", 31},
      {"conv3d-tiny", 100},
      {"dlrm-tiny", 90},
      {"fasttext", 100},
      {"gcn", 94},
      {"gpt2-tiny", 36},
      {"gru-forecast", 100},
      {"lenet", 91},
      {"llama-tiny", 25},
      {"loss-in-graph", 91},
      {"lstm-dynamo", 96},
      {"mlp-digits", 100},
      {"mlp-mixer-tiny", 32},
      {"mobilenetv2-tiny", 24},
      {"resnet-tiny", 88},
      {"roberta-tiny", 27},
      {"siren", 70},
      {"unet", 28},
      {"vit-tiny-slim", 25},
  };
  ASSERT_TRUE(kPercent.count(GetParam())) << "who adds an entry says what is possible";
  uint64_t budget = plan("x86-64-v3") * kPercent.at(GetParam()) / 100;
  ASSERT_GT(budget, 0u);
  uint64_t taken = plan("x86-64-v3", budget);
  EXPECT_GT(taken, 0u);
  EXPECT_LE(taken, budget);
}

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Budget, BudgetTest, testing::ValuesIn(listEntries()), nameOf);
INSTANTIATE_TEST_SUITE_P(Budget, SmallestBudgetTest,
                         testing::Values("autoencoder-conv", "dlrm-tiny", "gpt2-tiny", "lenet",
                                         "lstm-dynamo"),
                         nameOf);

} // namespace
