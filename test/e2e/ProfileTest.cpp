// `ortc run --profile`: every call is counted under a name that tells what it is, and the lines add up to the step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using Json = nlohmann::json;

namespace {

class ProfileTest : public testing::Test {
protected:
  void compile(const std::string &name) {
    ZooEntry entry(name);
    data = entry.data();
    std::vector<std::string> arguments{"train", entry.model(), "-o",     folder / "a", "--optimizer",
                                       "adamw", "--target",    "native", "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    mustRun(arguments);
    manifest = Json::parse(readFile(folder / "a/manifest.json"));
  }

  /// Runs with --profile and gives the event of the metrics; `text` is the output.
  Json run(const std::string &threads, std::string &text) {
    std::string metrics = folder / ("metrics" + threads + ".jsonl");
    text = mustRun({"run", folder / "a", "--data", data, "--steps", "12", "--profile", "--threads", threads,
                    "--metrics", metrics, "--quiet"})
               .text;
    std::istringstream lines(readFile(metrics));
    Json last;
    for (std::string line; std::getline(lines, line);)
      last = Json::parse(line);
    EXPECT_EQ(last.value("event", ""), "profile");
    return last;
  }

  TemporaryFolder folder;
  std::string data;
  Json manifest;
};

TEST_F(ProfileTest, LinesNameKernelsAndAddUpToTheStep) {
  compile("lenet");
  for (const char *threads : {"1", "2"}) {
    std::string text;
    Json event = run(threads, text);
    EXPECT_EQ(event["steps"], 11);
    EXPECT_EQ(event["warm_up"], 1);
    ASSERT_EQ(event["machine"].size(), *threads == '1' ? 1u : 2u);
    EXPECT_GT(event["machine"][0]["gflops"].get<double>(), 0);
    double sum = event["between_ms"].get<double>() + event["data_ms"].get<double>(), before = 1e9;
    bool hasConv = false, hasGradient = false, hasUpdate = false;
    for (const Json &kernel : event["kernels"]) {
      double took = kernel["ms"];
      EXPECT_LE(took, before);
      before = took;
      sum += took;
      std::string work = kernel["work"], place = kernel["place"];
      EXPECT_FALSE(work.empty()) << kernel;
      EXPECT_FALSE(kernel["shape"].get<std::string>().empty()) << kernel;
      EXPECT_GT(kernel["bytes"].get<double>(), 0) << kernel;
      EXPECT_LT(kernel.value("bound_ms", 0.0), 1e3) << kernel;
      hasConv |= work.find("conv") == 0 && place.find("Conv:") == 0;
      hasGradient |= work.find("conv filter gradient") == 0 && place.find("gradient of Conv:") == 0;
      hasUpdate |= place.find("update of ") != std::string::npos;
    }
    EXPECT_TRUE(hasConv && hasGradient && hasUpdate) << text;
    EXPECT_NEAR(sum, event["ms"].get<double>(), 0.01 * sum);
    EXPECT_EQ(
        text.find("\nprofile of 11 steps (1 step of warm-up left out), " + std::string(threads) + " thread"),
        0u)
        << text;
    EXPECT_NE(text.find("  the step\n"), std::string::npos) << text;
  }
}

/// Steps of loops count as often as they run; checks of indices are no kernels.
TEST_F(ProfileTest, EveryCallIsCounted) {
  for (const char *name : {"gru-forecast", "fasttext"}) {
    compile(name);
    std::string text;
    Json event = run("1", text);
    double calls = 0, flops = 0;
    for (const Json &kernel : event["kernels"]) {
      calls += kernel["calls"].get<double>();
      flops += kernel["flops"].get<double>();
      EXPECT_EQ(kernel["calls"].get<double>(), std::round(kernel["calls"].get<double>()));
    }
    const Json &entry = manifest["entries"][0];
    ASSERT_EQ(entry["role"], "train");
    EXPECT_LE(calls, entry["steps"].get<double>()) << name;
    EXPECT_GE(calls, 0.8 * entry["steps"].get<double>()) << name;
    EXPECT_NEAR(flops, entry["flops"].get<double>(), 0.01 * flops) << name;
  }
}

} // namespace
