// `ortc plan --fit`: every row is what a session allocates when the model is compiled by the flags of the row, and the
// best row is the one that trains most of those that fit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ortc/ortc.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using Json = nlohmann::ordered_json;

namespace {

class FitTest : public testing::Test {
protected:
  std::vector<std::string> flagsOf(const std::string &model) const {
    ZooEntry entry(model);
    std::vector<std::string> flags{entry.model(), "--optimizer", "adamw", "--target", "native"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    return flags;
  }
  Outcome plan(const std::string &model, const std::string &budget) {
    std::vector<std::string> flags = flagsOf(model);
    flags.insert(flags.begin(), "plan");
    flags.insert(flags.end(), {"--fit", budget, "--report", folder / "plan.json"});
    Outcome outcome = runTool(flags);
    fit = Json::parse(readFile(folder / "plan.json"))["fit"];
    return outcome;
  }
  /// What a session takes: persistent, transient.
  std::pair<uint64_t, uint64_t> allocate(const std::string &model, const Json &row) {
    std::vector<std::string> flags = flagsOf(model);
    flags.insert(flags.begin(), "train");
    for (const Json &value : row["train"])
      flags.insert(flags.end(), {"--train", value.get<std::string>()});
    flags.insert(flags.end(), {"-o", folder / "model", "--quiet"});
    mustRun(flags);
    ortc_program *program = nullptr;
    EXPECT_EQ(ortc_program_open_file((folder / "model/model.ortc").c_str(), nullptr, &program, nullptr),
              ORTC_OK);
    ortc_program_info info{};
    info.size = sizeof info;
    ortc_session_options options{};
    options.size = sizeof options;
    ortc_sizes sizes{};
    sizes.size = sizeof sizes;
    EXPECT_EQ(ortc_program_get_info(program, &info), ORTC_OK);
    options.workers = info.max_workers;
    EXPECT_EQ(ortc_session_sizes(program, &options, &sizes), ORTC_OK);
    ortc_program_close(program);
    return {sizes.persistent, sizes.transient};
  }
  /// Checks every `step`-th row.
  void expectAllocated(const std::string &model, size_t step) {
    for (size_t i = 0; i < fit["sets"].size(); i += step) {
      const Json &row = fit["sets"][i];
      SCOPED_TRACE(row["what"].get<std::string>());
      auto [persistent, transient] = allocate(model, row);
      EXPECT_EQ(row["persistent"], persistent);
      EXPECT_EQ(row["transient"], transient);
      auto manifest = Json::parse(readFile(folder / "model/manifest.json"));
      EXPECT_EQ(row["flops"], manifest["entries"][0]["flops"]);
      EXPECT_EQ(row["constants"], manifest["memory"]["constants"]);
    }
  }

  TemporaryFolder folder;
  Json fit;
};

TEST_F(FitTest, RowsAreWhatSessionsAllocate) {
  Outcome outcome = plan("mlp-digits", "50KiB");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  // Of two layers: one, biases, and three shares of one and of both.
  ASSERT_EQ(fit["sets"].size(), 1u + 1 + 1 + 6);
  expectAllocated("mlp-digits", 1);
  EXPECT_EQ(fit["sets"][0]["values"], 64 * 64 + 64 + 64 * 10 + 10);
  EXPECT_EQ(fit["sets"][1]["what"], "last 1 of 2 layers");
  EXPECT_EQ(fit["sets"][1]["values"], 64 * 10 + 10);
  EXPECT_EQ(fit["sets"][2]["values"], 64 + 10);
  EXPECT_EQ(fit["sets"][3]["what"], "all layers, 1/2 of the channels");
  EXPECT_EQ(fit["sets"][3]["values"], 32 * 64 + 32 + 5 * 64 + 5);
}

TEST_F(FitTest, RowsOfConvolutionsAndTables) {
  for (const char *model : {"lenet", "fasttext"}) {
    SCOPED_TRACE(model);
    plan(model, "1MiB");
    ASSERT_GE(fit["sets"].size(), 5u);
    expectAllocated(model, 3);
  }
}

TEST_F(FitTest, TheBestTrainsMostOfWhatFits) {
  for (uint64_t budget : {42000, 50000, 62000, 100000}) {
    SCOPED_TRACE(budget);
    Outcome outcome = plan("mlp-digits", std::to_string(budget));
    int64_t most = -1;
    for (const Json &row : fit["sets"]) {
      bool fits = row["persistent"].get<uint64_t>() + row["transient"].get<uint64_t>() <= budget;
      EXPECT_EQ(row["fits"], fits);
      most = std::max(most, fits ? row["values"].get<int64_t>() : -1);
    }
    if (most < 0) {
      EXPECT_TRUE(fit["best"].is_null());
      continue;
    }
    ASSERT_FALSE(fit["best"].is_null());
    const Json &best = fit["sets"][fit["best"].get<size_t>()];
    EXPECT_TRUE(best["fits"].get<bool>());
    EXPECT_EQ(best["values"], most);
    // The screen says the same, with the flags.
    size_t line = outcome.text.find("\nbest");
    ASSERT_NE(line, std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("\nbest", line + 1), std::string::npos);
    EXPECT_NE(outcome.text.find(best["what"].get<std::string>(), line), std::string::npos);
    for (const Json &value : best["train"])
      EXPECT_NE(outcome.text.find("--train '" + value.get<std::string>() + "'"), std::string::npos);
  }
}

TEST_F(FitTest, WhereThereIsNoChoiceItIsRefused) {
  const std::string model = ZooEntry("mlp-digits").model();
  auto refusal = [&](const std::vector<std::string> &more) {
    std::vector<std::string> flags{"plan", model, "--shape", "batch=64", "--fit", "1MiB"};
    flags.insert(flags.end(), more.begin(), more.end());
    Outcome outcome = runTool(flags);
    EXPECT_EQ(outcome.status, 2);
    return outcome.errors;
  };
  EXPECT_EQ(refusal({"--loss", "none"}),
            "ortc: error: --fit chooses what is trained, and with --loss none nothing is; "
            "leave one of both out\n");
  EXPECT_EQ(refusal({"--lora", ".*weight:rank=2"}),
            "ortc: error: --fit chooses what is trained, and --lora trains every "
            "adapter; leave one of both out\n");
}

TEST_F(FitTest, NothingThatFitsIsARefusal) {
  Outcome outcome = plan("mlp-digits", "8KiB");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(fit["best"].is_null());
  EXPECT_NE(outcome.text.find("fit 8KiB"), std::string::npos) << "the table is shown all the same";
  EXPECT_NE(outcome.errors.find("nothing fits --fit 8KiB: the least is "), std::string::npos)
      << outcome.errors;
}

} // namespace
