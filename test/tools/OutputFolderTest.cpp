// The folder that a compilation writes: replaced whole or not at all, and never with somebody else's files in it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "compiler/driver/OutputFolder.h"
#include "test/host/data_files.h"

using ortc::driver::OutputFolder;
using ortc::host::test::readFile;

namespace fs = std::filesystem;

namespace {

class OutputFolderTest : public testing::Test {
protected:
  /// Writes an artifact whose file holds `contents`; the message of an error, or "".
  std::string write(const std::string &target, const std::string &contents) {
    OutputFolder output(target);
    std::string error;
    if (output.open(error) && output.write("model.ortc", contents, error) &&
        output.write("manifest.json", "{}", error))
      output.commit(error);
    return error;
  }
  size_t countEntries() {
    return size_t(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator{}));
  }

  ortc::host::test::TemporaryFolder folder;
};

} // namespace

TEST_F(OutputFolderTest, ReplacesAnArtifactAndLeavesNothingElse) {
  std::string target = folder / "new/artifact";
  EXPECT_EQ(write(target, "one"), "");
  EXPECT_EQ(write(target + "/", "two"), "");
  EXPECT_EQ(readFile(target + "/model.ortc"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new"), fs::directory_iterator{}), 1);
}

TEST_F(OutputFolderTest, RefusesToDeleteWhatIsNotItsOwn) {
  std::string target = folder / "artifact", error;
  ASSERT_EQ(write(target, "one"), "");
  folder.write("artifact/ck.safetensors", "weights");
  EXPECT_EQ(write(target, "two"),
            "output folder '" + target +
                "' holds 'ck.safetensors': it is replaced whole, so only files of an artifact may "
                "be in it; move the others or name another folder");
  EXPECT_EQ(readFile(target + "/model.ortc"), "one");
  EXPECT_EQ(readFile(target + "/ck.safetensors"), "weights");
  for (const char *name : {"a", "b", "d", "e"})
    folder.write(std::string("artifact/") + name, "");
  EXPECT_FALSE(OutputFolder(target).check(error));
  EXPECT_NE(error.find("holds 'a', 'b', 'ck.safetensors', 'd' and 1 more: "), std::string::npos) << error;
  EXPECT_EQ(countEntries(), 1u);
}

TEST_F(OutputFolderTest, ChecksWithoutTouchingAnything) {
  std::string error, file = folder.write("file", "");
  EXPECT_TRUE(OutputFolder(folder / "some/where/new").check(error)) << error;
  EXPECT_FALSE(OutputFolder(file).check(error));
  EXPECT_EQ(error, "output '" + file + "' is a file; name a folder");
  EXPECT_FALSE(OutputFolder(file + "/artifact").check(error));
  EXPECT_EQ(error, "cannot create output folder '" + file + "/artifact': '" + file + "' is no folder");
  EXPECT_FALSE(ortc::driver::canCreateFile(folder / "missing/report.json", error));
  EXPECT_EQ(error, "cannot write '" + (folder / "missing/report.json") + "': No such file or directory");
  EXPECT_FALSE(ortc::driver::canCreateFile(folder / "", error));
  EXPECT_EQ(countEntries(), 1u);
}

TEST_F(OutputFolderTest, LeavesNothingWithoutCommit) {
  std::string error;
  {
    OutputFolder output(folder / "artifact");
    ASSERT_TRUE(output.open(error)) << error;
    ASSERT_TRUE(output.write("model.ortc", "half", error)) << error;
  }
  EXPECT_EQ(countEntries(), 0u);
}

TEST_F(OutputFolderTest, FollowsTheUmask) {
  mode_t before = umask(027);
  std::string error = write(folder / "artifact", "one");
  umask(before);
  ASSERT_EQ(error, "");
  struct stat about{};
  ASSERT_EQ(stat((folder / "artifact").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0750u);
  ASSERT_EQ(stat((folder / "artifact/model.ortc").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0640u);
}

// Two renames would leave a moment without an artifact, which a kill could make permanent.
TEST_F(OutputFolderTest, ThereIsAnArtifactAtEveryMoment) {
  std::string target = folder / "artifact";
  ASSERT_EQ(write(target, "0"), "");
  std::atomic<bool> isDone = false;
  std::atomic<int> missed = 0;
  std::thread watcher([&] {
    while (!isDone)
      missed += access((target + "/model.ortc").c_str(), R_OK) != 0;
  });
  for (int i = 1; i < 60; ++i)
    EXPECT_EQ(write(target, std::to_string(i)), "");
  isDone = true;
  watcher.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(countEntries(), 1u);
}

TEST_F(OutputFolderTest, ALinkStaysALink) {
  fs::create_directory(folder / "real");
  fs::create_directory_symlink(folder / "real", folder / "link");
  ASSERT_EQ(write(folder / "link", "one"), "");
  ASSERT_EQ(write(folder / "link", "two"), "");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(readFile(folder / "real/model.ortc"), "two");
}
