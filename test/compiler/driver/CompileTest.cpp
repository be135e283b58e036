// The compiler as a library: several times, in several threads, without a word.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/artifact/FileLayout.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Phases.h"
#include "test/engine/data_files.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/resource.h>
#include <thread>

using namespace ortc;

namespace {

CompileOptions makeOptions(const std::string &model = "mlp-digits") {
  CompileOptions options;
  options.model = std::string(ORTC_TEST_DATA) + "/zoo/" + model + "/model.onnx";
  options.targets = {"x86-64-v3"};
  if (model == "mlp-digits")
    EXPECT_TRUE(addShapes("batch=4", options).isOk());
  return options;
}

/// The contents of model.ortc.
artifact::Bytes toBytes(const driver::Compiled &compiled) {
  artifact::MemorySink sink;
  Status written = compiled.writeFile(sink);
  EXPECT_TRUE(written.isOk()) << written.getMessage();
  return sink.file;
}

artifact::Bytes compileToBytes(const CompileOptions &options) {
  Expected<driver::Compiled> compiled = driver::compile(options);
  EXPECT_TRUE(static_cast<bool>(compiled)) << compiled.getStatus().getMessage();
  return compiled ? toBytes(*compiled) : artifact::Bytes();
}

TEST(CompileTest, TwiceInOneProcessAndInTwoThreadsGivesTheSameBytes) {
  artifact::Bytes first = compileToBytes(makeOptions()), second = compileToBytes(makeOptions());
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, second);
  artifact::Bytes other = compileToBytes(makeOptions("lenet"));
  artifact::Bytes inThreads[2];
  std::thread one([&] { inThreads[0] = compileToBytes(makeOptions()); });
  std::thread two([&] { inThreads[1] = compileToBytes(makeOptions("lenet")); });
  one.join();
  two.join();
  EXPECT_EQ(inThreads[0], first);
  EXPECT_EQ(inThreads[1], other);
}

TEST(CompileTest, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_FALSE(compileToBytes(makeOptions()).empty());
  CompileOptions missing = makeOptions();
  missing.model = "no-such-file.onnx";
  EXPECT_FALSE(driver::compile(missing));
  CompileOptions unbound = makeOptions();
  unbound.bindings[0].shapes.clear();
  EXPECT_FALSE(driver::compile(unbound));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Kernels of three vendors, made, taken from the cache, and made again where entries are damaged.
TEST(CompileTest, KernelsOfACacheChangeNoByte) {
  engine::test::TemporaryFolder folder;
  CompileOptions options = makeOptions();
  options.targets = {"x86-64-v3", "wasm32", "sm_80", "gfx942"};
  const artifact::Bytes plain = compileToBytes(options);
  options.kernelCache = folder / "kernels";
  EXPECT_EQ(compileToBytes(options), plain);
  auto rewrite = [&](const std::function<void(const std::string &)> &change) {
    size_t count = 0;
    for (const auto &each : std::filesystem::directory_iterator(options.kernelCache))
      if (each.path().filename().string().starts_with("llvmcache-"))
        change(each.path()), ++count;
    return count;
  };
  std::filesystem::file_time_type old{};
  size_t made = rewrite([&](const std::string &path) { std::filesystem::last_write_time(path, old); });
  EXPECT_GT(made, 20u);
  EXPECT_EQ(compileToBytes(options), plain);
  EXPECT_EQ(rewrite([&](const std::string &path) {
              EXPECT_EQ(std::filesystem::last_write_time(path), old) << "made again: " << path;
              std::ofstream(path, std::ios::app) << "more";
            }),
            made);
  EXPECT_EQ(compileToBytes(options), plain);
  rewrite([&](const std::string &path) { EXPECT_NE(std::filesystem::last_write_time(path), old) << path; });
}

TEST(CompileTest, ACacheThatCannotBeWrittenIsANote) {
  engine::test::TemporaryFolder folder;
  CompileOptions options = makeOptions();
  const artifact::Bytes plain = compileToBytes(options);
  options.kernelCache = folder / "kernels";
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit none = {0, before.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  Expected<driver::Compiled> compiled = driver::compile(options);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(static_cast<bool>(compiled)) << compiled.getStatus().getMessage();
  EXPECT_EQ(toBytes(*compiled), plain);
  EXPECT_EQ(std::count(compiled->notes.begin(), compiled->notes.end(),
                       "--kernel-cache '" + options.kernelCache +
                           "': code of kernels cannot be kept there: File too large"),
            1);
}

TEST(CompileTest, RefusesACacheThatOthersMayWrite) {
  engine::test::TemporaryFolder folder;
  CompileOptions options = makeOptions();
  options.kernelCache = folder / "kernels";
  std::filesystem::create_directory(options.kernelCache);
  std::filesystem::permissions(options.kernelCache, std::filesystem::perms::all);
  Status status = driver::compile(options).getStatus();
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("others may write there"), std::string::npos) << status.getMessage();
}

// Flags and names of files are bytes, and the manifest is text.
TEST(CompileTest, BytesThatAreNoTextAreReplacedInTheManifest) {
  CompileOptions options = makeOptions();
  options.freeze = {*NamePattern::parse("\xff|.*bias")};
  Expected<driver::Compiled> compiled = driver::compile(options);
  ASSERT_TRUE(static_cast<bool>(compiled)) << compiled.getStatus().getMessage();
  EXPECT_NE(compiled->artifact.manifest.find("--freeze \uFFFD|.*bias"), std::string::npos);
}

TEST(CompileTest, FailuresHaveAnExitStatusAndNameTheModel) {
  CompileOptions missing = makeOptions();
  missing.model = "no-such-file.onnx";
  Status status = driver::compile(missing).getStatus();
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("no-such-file.onnx"), std::string::npos) << status.getMessage();
  CompileOptions phase = makeOptions();
  phase.compileTo = "fusion";
  EXPECT_EQ(driver::compile(phase).getStatus().getMessage(),
            "--compile-to 'fusion' is not a phase; phases are import, legalize, simplify, loss, "
            "differentiate, update, "
            "entries, fuse, place, code");
}

TEST(CompileTest, TellsWhatBeginsAndEndsWhereACallbackSays) {
  std::vector<std::string> begun, ended;
  driver::CompileExtras extras;
  extras.progress = [&](const std::string &what) { begun.push_back(what); };
  extras.afterPhase = [&](const char *phase, const std::string &, mlir::ModuleOp ir) {
    EXPECT_TRUE(ir);
    ended.push_back(phase);
    return ended.back() == "loss" ? Status::failure("enough") : Status();
  };
  Status status = driver::compile(makeOptions(), extras).getStatus();
  EXPECT_EQ(status.getMessage(), "enough");
  EXPECT_EQ(ended, (std::vector<std::string>{"import", "legalize", "simplify", "loss"}));
  ASSERT_EQ(begun.size(), ended.size());
  EXPECT_EQ(begun.back(), driver::describePhase("loss"));
}

/// The code is most of the time, and nobody waits for it to be told of a budget.
TEST(CompileTest, ARefusedBudgetMakesNoCode) {
  CompileOptions options = makeOptions();
  options.memoryBudget = 1;
  std::vector<std::string> begun;
  driver::CompileExtras extras;
  extras.progress = [&](const std::string &what) { begun.push_back(what); };
  Status status = driver::compile(options, extras).getStatus();
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("the smallest budget found to be enough is "), std::string::npos)
      << status.getMessage();
  EXPECT_FALSE(begun.empty());
  for (const std::string &what : begun)
    EXPECT_EQ(what.find("making code"), std::string::npos) << what;
}

/// What would do for one family may be too little for the other.
TEST(CompileTest, EveryFamilySaysWhatItNeeds) {
  CompileOptions options = makeOptions();
  options.targets = {"x86-64-v3", "sm_80"};
  options.memoryBudget = 1;
  Status status = driver::compile(options).getStatus();
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  size_t cpu = status.getMessage().find("model.onnx: cpu targets: --memory-budget 1: the smallest"),
         gpu = status.getMessage().find("; gpu targets: --memory-budget 1: the smallest");
  EXPECT_TRUE(cpu != std::string::npos && gpu != std::string::npos && cpu < gpu) << status.getMessage();
}

TEST(CompileTest, ABudgetThatIsNoLimitChangesNoCode) {
  CompileOptions options = makeOptions();
  Expected<driver::Compiled> plain = driver::compile(options);
  options.memoryBudget = uint64_t(1) << 40;
  Expected<driver::Compiled> limited = driver::compile(options);
  ASSERT_TRUE(plain && limited);
  ASSERT_EQ(plain->artifact.codes.size(), limited->artifact.codes.size());
  for (size_t i = 0; i < plain->artifact.codes.size(); ++i)
    EXPECT_EQ(plain->artifact.codes[i].bytes, limited->artifact.codes[i].bytes);
}

TEST(CompileTest, WhatAPhaseMakesIsThereAfterIt) {
  CompileOptions options = makeOptions();
  options.compileTo = "place";
  driver::CompileExtras extras;
  extras.keepsParts = true;
  Expected<driver::Compiled> placed = driver::compile(options, extras);
  ASSERT_TRUE(placed) << placed.getStatus().getMessage();
  EXPECT_TRUE(placed->parts);
  ASSERT_EQ(placed->families.size(), 1u);
  EXPECT_FALSE(placed->families[0].kernels.names.empty());
  ASSERT_FALSE(placed->facts.families.at(0).entries.empty());
  EXPECT_GT(placed->facts.families[0].entries[0].flops, 0) << "work is known without code";
  EXPECT_TRUE(placed->families[0].codes.empty());
  EXPECT_TRUE(placed->artifact.entries.empty());
  EXPECT_EQ(placed->phases.back().name, "place");
}

TEST(CompileTest, OneFamilySharesItsEntries) {
  CompileOptions options = makeOptions();
  options.targets = {"x86-64", "x86-64-v3"};
  Expected<driver::Compiled> compiled = driver::compile(options);
  ASSERT_TRUE(compiled) << compiled.getStatus().getMessage();
  EXPECT_EQ(compiled->artifact.codes.size(), 2u);
  for (const artifact::Entry &entry : compiled->artifact.entries)
    EXPECT_EQ(entry.target, ORTC_NONE);
  EXPECT_EQ(compiled->artifact.manifest.find("\"family\""), std::string::npos);
}

} // namespace
