// The file of --tune: what it keeps, and what is no such file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/tuning/TuneCache.h"
#include "test/engine/data_files.h"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace ortc;
using namespace ortc::tuning;

namespace {

class TuneCacheTest : public testing::Test {
protected:
  void put(const std::string &text) { std::ofstream(path, std::ios::binary) << text; }
  /// The message of the error, or "".
  std::string read(tuning::TuneCache &cache, bool mayBeMissing = false) {
    return cache.read(path, mayBeMissing).getMessage();
  }
  std::string readText(const std::string &text) {
    put(text);
    tuning::TuneCache cache;
    return read(cache);
  }

  engine::test::TemporaryFolder folder;
  const std::string path = folder / "tune.json";
  const std::string begin = R"({"format": "ortc tuned kernels", "version": 1, "kernels": )";
};

TEST_F(TuneCacheTest, KeepsEverythingSorted) {
  tuning::TuneCache cache;
  cache.set("z", "b", {{{{"rows", 6}, {"depth", 384}}}, 2000, 1500});
  cache.set("z", "a", {std::nullopt, 700, 700});
  cache.set("y", "a", {{{{"rows", 4}}}, 30, 20});
  std::string text = cache.write();
  EXPECT_EQ(text.back(), '\n');
  EXPECT_LT(text.find("\"depth\""), text.find("\"rows\": 6"));
  EXPECT_LT(text.find("\"y\""), text.find("\"z\""));
  put(text);
  tuning::TuneCache same;
  ASSERT_EQ(read(same), "");
  EXPECT_EQ(same.write(), text);
  const tuning::TunedKernel &kernel = same.at("z").at("b");
  EXPECT_EQ(kernel.choice, (backends::KernelChoice{{"rows", 6}, {"depth", 384}}));
  EXPECT_EQ(kernel.usualNanoseconds, 2000);
  EXPECT_EQ(kernel.tunedNanoseconds, 1500);
  EXPECT_FALSE(same.at("z").at("a").choice);
  EXPECT_TRUE(same.at("x").empty());
  backends::KernelChoices choices = same.choices("z"); // without what stays as the table has it
  EXPECT_EQ(choices.byKey.size(), 1u);
  EXPECT_EQ(choices.source, "tuning cache '" + path + "'");
}

TEST_F(TuneCacheTest, AFileThatIsNotThereMayBeNew) {
  tuning::TuneCache cache;
  EXPECT_EQ(read(cache, /*mayBeMissing=*/true), "");
  EXPECT_EQ(read(cache), "cannot read tuning cache '" + path + "': No such file or directory");
}

TEST_F(TuneCacheTest, WhatIsNoSuchFileIsRefused) {
  std::string head = "tuning cache '" + path + "': ";
  EXPECT_EQ(readText(""), "cannot read tuning cache '" + path + "': it is empty");
  EXPECT_EQ(readText("\x01\xff garbage"), head + "it is not JSON");
  EXPECT_EQ(readText("{\"format\": \"ortc tuned kernels\", "), head + "it is not JSON");
  for (const char *text :
       {"[]", "3", "{}", R"({"format": 7})", R"({"format": "other", "version": 1, "kernels": {}})",
        R"({"format": "ortc tuned kernels", "kernels": {}})"})
    EXPECT_EQ(readText(text), head + "it is no file of --tune") << text;
  EXPECT_EQ(readText(R"({"format": "ortc tuned kernels", "version": 2, "kernels": {}})"),
            head + "it has version 2, and this ortc reads version 1; measure again into another file");
  EXPECT_EQ(readText(R"({"format": "ortc tuned kernels", "version": "1", "kernels": {}})"),
            head + "it has version \"1\", and this ortc reads version 1; measure again into another file");
  EXPECT_EQ(readText(begin + "[]}"), head + "it has no 'kernels'");
  EXPECT_EQ(readText(begin + R"({"here": [1]}})"), head + "'here' holds no kernels");
  EXPECT_EQ(readText(begin + R"({"here": {}}})"), "");
}

TEST_F(TuneCacheTest, WhatIsKnownStays) {
  tuning::TuneCache cache, other;
  cache.set("z", "a", {std::nullopt, 700, 700});
  other.set("z", "a", {{{{"rows", 6}}}, 800, 600});
  other.set("z", "b", {std::nullopt, 50, 50});
  other.set("y", "a", {std::nullopt, 40, 40});
  put(other.write());
  ASSERT_EQ(read(cache), "");
  EXPECT_EQ(cache.at("z").at("a").usualNanoseconds, 700);
  EXPECT_EQ(cache.at("z").at("b").usualNanoseconds, 50);
  EXPECT_EQ(cache.at("y").at("a").usualNanoseconds, 40);
}

// A pipe would be waited for, a device read for ever.
TEST_F(TuneCacheTest, OnlyRegularFilesOfSomeSizeAreRead) {
  auto refuse = [](const std::string &file, const std::string &want) {
    for (bool mayBeMissing : {false, true})
      EXPECT_EQ(tuning::TuneCache().read(file, mayBeMissing).getMessage(),
                "cannot read tuning cache '" + file + "': " + want);
  };
  std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  refuse(pipe, "it is no regular file");
  refuse("/dev/zero", "it is no regular file");
  refuse(folder / "", "it is a folder");
  put("");
  ASSERT_EQ(truncate(path.c_str(), (64 << 20) + 1), 0);
  refuse(path, "it has 67108865 bytes, and at most 67108864 are read; measure again into another file");
}

// Copies and dumps of such a value would take a stack as deep.
TEST_F(TuneCacheTest, DeepValuesAreNoJsonOfOurs) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  const std::string want = "tuning cache '" + path + "': it is not JSON";
  EXPECT_EQ(readText(R"({"format": "ortc tuned kernels", "kernels": {}, "version": )" + deep + "}"), want);
  EXPECT_EQ(readText(R"({"version": 1, "kernels": {}, "format": )" + deep + "}"), want);
  EXPECT_EQ(
      readText(begin + R"({"here": {"k": {"choice": null, "tuned_ns": 2, "table_ns": )" + deep + "}}}}"),
      want);
}

// As of a disk that fails; iterators over a stream would throw.
TEST_F(TuneCacheTest, AReadThatFailsIsSaid) {
  EXPECT_EQ(tuning::TuneCache().read("/proc/self/mem", /*mayBeMissing=*/false).getMessage(),
            "cannot read tuning cache '/proc/self/mem': Input/output error");
}

TEST_F(TuneCacheTest, EntriesAreWholeNumbers) {
  auto entry = [&](const std::string &text) { return begin + R"({"here": {"k": )" + text + "}}}"; };
  EXPECT_EQ(readText(entry(R"({"choice": {"rows": 6}, "table_ns": 2, "tuned_ns": 1})")), "");
  EXPECT_EQ(readText(entry(R"({"choice": null, "table_ns": 2, "tuned_ns": 2})")), "");
  for (const char *text :
       {"3", "null", "{}", R"({"choice": 3, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {}, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {"rows": 1.5}, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {"rows": "6"}, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {"rows": -6}, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {"rows": 18446744073709551615}, "table_ns": 2, "tuned_ns": 2})",
        R"({"choice": {"rows": null}, "table_ns": 2, "tuned_ns": 2})", R"({"choice": null, "tuned_ns": 2})",
        R"({"choice": null, "table_ns": 2, "tuned_ns": "2"})"})
    EXPECT_EQ(readText(entry(text)), "tuning cache '" + path +
                                         "': 'k' needs a 'choice' of whole numbers (or null), 'table_ns' and "
                                         "'tuned_ns'")
        << text;
}

} // namespace
