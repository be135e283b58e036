// Every target on the files that fuzzing begins with, and on those with which it once found something.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/Target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

namespace ortc::fuzz {
namespace {

struct Target {
  const char *name; ///< of its folders
  bool (*run)(Input);
  const char *more = nullptr;   ///< a folder of other tests
  const char *ending = nullptr; ///< of the files there that suit it
};

const Target kTargets[] = {
    {"artifact", fuzzArtifact},
    {"inspect", fuzzInspect, "fuzz/corpus/artifact", ".ortc"},
    {"manifest", fuzzManifest},
    {"checkpoint", fuzzCheckpoint},
    {"onnx", fuzzOnnx, "compiler/legalize/cases", ".onnx"},
    {"import", fuzzImport, "compiler/legalize/cases", ".onnx"},
    {"npz", fuzzNpz, "compiler/legalize/cases", ".npz"},
    {"npy", fuzzNpy},
    {"idx", fuzzIdx},
    {"safetensors", fuzzSafetensors},
    {"tar", fuzzTar},
    {"table", fuzzTable},
    {"tokens", fuzzTokens},
    {"csv", fuzzCsv},
    {"tune", fuzzTune},
};

class ReplayTest : public testing::TestWithParam<Target> {};

/// Files of a folder, sorted; a folder that git does not have because it is empty has none.
std::vector<std::filesystem::path> listFiles(const std::filesystem::path &folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST_P(ReplayTest, ComesBack) {
  const std::filesystem::path root = ORTC_TEST_DATA;
  size_t seeds = 0;
  std::vector<std::filesystem::path> folders = {root / "fuzz/corpus" / GetParam().name,
                                                root / "fuzz/found" / GetParam().name};
  if (GetParam().more)
    folders.push_back(root / GetParam().more);
  testing::internal::CaptureStdout(); // some print what they read
  for (const auto &folder : folders)
    for (const auto &file : listFiles(folder)) {
      SCOPED_TRACE(file);
      std::ifstream stream(file, std::ios::binary);
      std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
      std::fprintf(stderr, "%s\n", file.c_str()); // the last line names what does not come back
      bool isTaken = GetParam().run(bytes);
      // Behind a refusal there is little to find.
      bool isSeed = folder == folders[0] || (folder != folders[1] && file.extension() == GetParam().ending);
      EXPECT_TRUE(isTaken || !isSeed) << "the seed is refused; make-corpus.py makes it anew";
      ++seeds;
    }
  testing::internal::GetCapturedStdout();
  EXPECT_GT(seeds, 0u) << "no seeds are there";
}

INSTANTIATE_TEST_SUITE_P(Targets, ReplayTest, testing::ValuesIn(kTargets),
                         [](const auto &info) { return std::string(info.param.name); });

/// A folder whose target is gone, or misspelt, would never be replayed.
TEST(ReplayTest, EveryFolderHasATarget) {
  for (const char *kind : {"corpus", "found"})
    for (const auto &folder : listFiles(std::filesystem::path(ORTC_TEST_DATA) / "fuzz" / kind))
      EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets), [&](const Target &target) {
        return folder.filename() == target.name;
      })) << folder;
}

} // namespace
} // namespace ortc::fuzz
