// --tune and --tune-cache: what is measured is kept and found again, no bit depends on it, and no file does harm.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-tune [gtest flags]
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <thread>

#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Json = nlohmann::json;

class TuneTest : public testing::Test {
protected:
  std::vector<std::string> command(const ZooEntry &entry, const std::string &artifact,
                                   const std::vector<std::string> &more) {
    std::vector<std::string> arguments{
        "train",    entry.model(), "-o",          folder / artifact,
        "--target", "native",      "--optimizer", entry.optimizers.at("adamw")};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Every tensor after some steps.
  std::string train(const ZooEntry &entry, const std::string &artifact, const std::string &threads) {
    mustRun({"run", folder / artifact, "--data", entry.data(), "--steps", "4", "--threads", threads, "--save",
             folder / "checkpoint", "--quiet"});
    std::string file = readFile(folder / "checkpoint");
    uint64_t header = 0;
    if (file.size() > sizeof(header))
      std::memcpy(&header, file.data(), sizeof(header));
    EXPECT_GT(file.size(), header);
    return file.substr(std::min(file.size(), size_t(8 + header)));
  }

  Json kernels(const std::string &report) {
    return Json::parse(readFile(folder / report))["targets"][0]["kernels"];
  }

  /// A cache with a choice for every kernel of a report that is cut at all: the smallest tile.
  Json makeCache(const std::string &report, const std::string &place) {
    Json all = Json::object();
    for (const Json &kernel : kernels(report)) {
      if (!kernel.contains("blocking"))
        continue;
      const Json &blocking = kernel["blocking"];
      EXPECT_EQ(blocking["from"], "table");
      Json choice = blocking["choice"];
      choice["rows"] = 1, choice["vectors"] = 1;
      all[blocking["key"].get<std::string>()] = {{"choice", choice}, {"table_ns", 2}, {"tuned_ns", 1}};
    }
    EXPECT_FALSE(all.empty());
    return {{"format", "ortc tuned kernels"}, {"version", 1}, {"kernels", {{place, all}}}};
  }

  std::string put(const std::string &name, const std::string &text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }

  TemporaryFolder folder;
  ZooEntry digits{"mlp-digits"};
};

TEST_F(TuneTest, WhatIsMeasuredIsKeptAndFoundAgain) {
  std::string cache = folder / "tune.json";
  Outcome first = mustRun(command(digits, "a", {"--tune", "--tune-cache", cache}));
  EXPECT_NE(first.text.find("measured kernels are faster cut otherwise"), std::string::npos) << first.text;
  std::string text = readFile(cache);
  Json file = Json::parse(text);
  ASSERT_EQ(file["kernels"].size(), 1u);
  EXPECT_FALSE(file["kernels"].begin()->empty());
  for (const Json &kernel : *file["kernels"].begin()) {
    EXPECT_GT(kernel["table_ns"], 0);
    if (kernel["choice"].is_null())
      EXPECT_EQ(kernel["tuned_ns"], kernel["table_ns"]);
    else
      EXPECT_LT(kernel["tuned_ns"], kernel["table_ns"]);
  }
  // Nothing is measured again, and without --tune the same code comes out.
  Outcome second = mustRun(command(digits, "b", {"--tune", "--tune-cache", cache}));
  EXPECT_NE(second.text.find("0 of 0 measured kernels"), std::string::npos) << second.text;
  EXPECT_EQ(readFile(cache), text);
  mustRun(command(digits, "c", {"--tune-cache", cache}));
  EXPECT_TRUE(readFile(folder / "a/model.ortc") == readFile(folder / "b/model.ortc"));
  EXPECT_TRUE(readFile(folder / "a/model.ortc") == readFile(folder / "c/model.ortc"));
}

TEST_F(TuneTest, WhatAnotherRunHasWrittenSinceIsKept) {
  std::string cache = folder / "tune.json";
  Json other = {{"choice", nullptr}, {"table_ns", 2}, {"tuned_ns", 2}};
  std::thread writer(
      [&] { // when this run has read the cache, which is not there yet, and measures nothing yet
        while (!std::filesystem::exists(folder / "ir/0-import.mlir"))
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        put("tune.json", Json{{"format", "ortc tuned kernels"},
                              {"version", 1},
                              {"kernels", {{"elsewhere", {{"k", other}}}}}}
                             .dump());
      });
  Outcome outcome =
      runTool(command(digits, "a", {"--tune", "--tune-cache", cache, "--dump-ir", folder / "ir"}));
  writer.join();
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  Json file = Json::parse(readFile(cache));
  EXPECT_EQ(file["kernels"].size(), 2u);
  EXPECT_EQ(file["kernels"]["elsewhere"]["k"], other);
}

/// Whatever the choices are: every kernel that can be cut otherwise is.
class TuneBitsTest : public TuneTest, public testing::WithParamInterface<std::string> {};

TEST_P(TuneBitsTest, NoBitDependsOnIt) {
  ZooEntry entry(GetParam());
  mustRun(command(entry, "usual", {"--max-workers", "4", "--report", folder / "usual.json"}));
  // What is measured of a small model says how the file calls this machine.
  std::string measured = folder / "measured.json";
  std::vector<std::string> artifacts{"other"};
  if (GetParam() == "lenet")
    artifacts.push_back("measured");
  mustRun(command(GetParam() == "lenet" ? entry : ZooEntry("mlp-digits"), "measured",
                  {"--max-workers", "4", "--tune", "--tune-cache", measured}));
  std::string place = Json::parse(readFile(measured))["kernels"].begin().key();
  std::string cache = put("probe.json", makeCache("usual.json", place).dump());
  mustRun(command(entry, "other",
                  {"--max-workers", "4", "--tune-cache", cache, "--report", folder / "other.json"}));
  size_t tuned = 0;
  for (const Json &kernel : kernels("other.json"))
    if (kernel.contains("blocking")) {
      EXPECT_EQ(kernel["blocking"]["from"], "tuning");
      EXPECT_EQ(kernel["blocking"]["choice"]["rows"], 1);
      ++tuned;
    }
  EXPECT_GE(tuned, 3u);
  EXPECT_FALSE(readFile(folder / "usual/model.ortc") == readFile(folder / "other/model.ortc"));
  std::string want = train(entry, "usual", "1");
  for (const std::string &artifact : artifacts)
    for (const char *threads : {"1", "2", "4"})
      EXPECT_TRUE(train(entry, artifact, threads) == want) << artifact << " " << threads;
}

INSTANTIATE_TEST_SUITE_P(Tune, TuneBitsTest, testing::Values("lenet", "gpt2-tiny", "resnet-tiny"),
                         [](const auto &info) { return caseName(info.param); });

TEST_F(TuneTest, OtherPlacesAreNotMeant) {
  mustRun(command(digits, "usual", {"--report", folder / "usual.json"}));
  std::string cache = put("cache.json", makeCache("usual.json", "native z80, 1 lanes, 2 workers").dump());
  mustRun(command(digits, "other", {"--tune-cache", cache}));
  EXPECT_TRUE(readFile(folder / "usual/model.ortc") == readFile(folder / "other/model.ortc"));
}

TEST_F(TuneTest, BadFilesAreRefusedAndNothingIsLeft) {
  auto refuse = [&](const std::vector<std::string> &more, const std::string &want) {
    Outcome outcome = runTool(command(digits, "refused", more));
    EXPECT_EQ(outcome.status, 2) << want;
    EXPECT_NE(outcome.errors.find("ortc: error: "), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find(want), std::string::npos) << outcome.errors;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
  };
  std::string missing = folder / "missing.json";
  refuse({"--tune-cache", missing}, "cannot read tuning cache '" + missing + "': No such file or directory");
  std::string garbage = put("garbage.json", "not at all");
  refuse({"--tune-cache", garbage}, "tuning cache '" + garbage + "': it is not JSON");
  refuse({"--tune", "--tune-cache", garbage}, "tuning cache '" + garbage + "': it is not JSON");
  EXPECT_EQ(readFile(garbage), "not at all");
  refuse({"--tune", "--compile-to", "place"}, "--tune measures code, and --compile-to place ends before it");
  refuse({"--tune", "--tune-cache", digits.model()}, "is not JSON");
  EXPECT_FALSE(std::filesystem::exists("ortc-tune.json"));

  // A cache with an impossible choice.
  std::string known = folder / "known.json";
  mustRun(command(digits, "a", {"--tune", "--tune-cache", known, "--report", folder / "report.json"}));
  Json file = Json::parse(readFile(known));
  std::string place = file["kernels"].begin().key();
  file["kernels"] = Json::object();
  for (const Json &kernel : kernels("report.json"))
    if (kernel.contains("blocking")) {
      Json choice = kernel["blocking"]["choice"];
      choice["rows"] = 99, choice["vectors"] = 99;
      file["kernels"][place][kernel["blocking"]["key"].get<std::string>()] = {
          {"choice", choice}, {"table_ns", 2}, {"tuned_ns", 1}};
    }
  std::string impossible = put("impossible.json", file.dump());
  refuse({"--tune-cache", impossible}, "tuning cache '" + impossible + "': 'contraction f32");
  refuse({"--tune-cache", impossible}, "rows 99, vectors 99");
}

class TuneLevelsTest : public TuneTest {};

TEST_F(TuneLevelsTest, TargetsThatCannotRunHereAreRefused) {
  std::ifstream about("/proc/cpuinfo");
  std::string flags((std::istreambuf_iterator<char>(about)), {});
  if (flags.find(" avx512f ") != std::string::npos)
    GTEST_SKIP() << "this machine runs every level";
  Outcome outcome = runTool({"train", digits.model(), "-o", folder / "a", "--shape", "batch=64", "--tune",
                             "--tune-cache", folder / "tune.json"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find(
                "--tune measures on this machine, which cannot run code for x86-64-v4; give --target "
                "native, or a level that it can run"),
            std::string::npos)
      << outcome.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "tune.json"));
}

} // namespace
