// The folder that a compilation writes: replaced whole or not at all, and never with somebody else's files in it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "compiler/artifact/OutputFolder.h"
#include "test/engine/data_files.h"

using ortc::ExitCode;
using ortc::artifact::OutputFolder;
using ortc::engine::test::readFile;

namespace fs = std::filesystem;

namespace {

/// Writes a file that holds `text`.
std::function<ortc::Status(ortc::artifact::ByteSink &)> holding(const std::string &text) {
  return [text](ortc::artifact::ByteSink &sink) {
    return sink.write({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  };
}

class OutputFolderTest : public testing::Test {
protected:
  /// Writes an artifact whose file holds `contents`; the message of an error, or "".
  std::string write(const std::string &target, const std::string &contents) {
    OutputFolder output(target);
    auto put = [&]() -> ortc::Status {
      ORTC_TRY(output.write(holding(contents), "manifest of " + contents));
      return output.commit();
    };
    return put().getMessage();
  }
  size_t countEntries() {
    return size_t(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator{}));
  }

  ortc::engine::test::TemporaryFolder folder;
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
  std::string target = folder / "artifact";
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
  ortc::Status status = OutputFolder(target).check();
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_NE(status.getMessage().find("holds 'a', 'b', 'ck.safetensors', 'd' and 1 more: "), std::string::npos)
      << status.getMessage();
  EXPECT_EQ(countEntries(), 1u);
}

TEST_F(OutputFolderTest, FilesForLinkingAreAnArtifactsOnlyBesideOne) {
  std::string target = folder / "sources";
  fs::create_directory(target);
  folder.write("sources/model.h", "int mine;");
  EXPECT_NE(write(target, "one"), "");
  EXPECT_EQ(readFile(target + "/model.h"), "int mine;");
  fs::remove(target + "/model.h");
  ASSERT_EQ(write(target, "one"), "");
  folder.write("sources/model.h", "of the artifact");
  EXPECT_EQ(write(target, "two"), "");
  EXPECT_FALSE(fs::exists(target + "/model.h"));
}

TEST_F(OutputFolderTest, ChecksWithoutTouchingAnything) {
  std::string file = folder.write("file", "");
  EXPECT_EQ(OutputFolder(folder / "some/where/new").check().getMessage(), "");
  auto expect = [](const std::string &target, ExitCode code, const std::string &message) {
    ortc::Status status = OutputFolder(target).check();
    EXPECT_EQ(status.getCode(), code);
    EXPECT_EQ(status.getMessage(), message);
  };
  expect(file, ExitCode::Refused, "output '" + file + "' is a file; name a folder");
  expect(file + "/artifact", ExitCode::Refused,
         "cannot create output folder '" + file + "/artifact': '" + file + "' is no folder");
  EXPECT_EQ(countEntries(), 1u);
  ASSERT_EQ(mkdir((folder / "old").c_str(), 0755), 0);
  ASSERT_EQ(mkdir((folder / "old/model.ortc").c_str(), 0755), 0);
  expect(folder / "old", ExitCode::Refused,
         "output folder '" + (folder / "old") +
             "' holds 'model.ortc', which is no regular file; remove it or name another folder");
}

// That is the disk, not the flags.
TEST_F(OutputFolderTest, FailsInAFolderThatIsReadOnly) {
  ASSERT_EQ(chmod((folder / "").c_str(), 0555), 0);
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) // who may write anywhere
      _exit(99);
    _exit(static_cast<int>(OutputFolder(folder / "artifact").check().getCode()));
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod((folder / "").c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::Failed));
}

TEST_F(OutputFolderTest, LeavesNothingWithoutCommit) {
  {
    OutputFolder output(folder / "artifact");
    ASSERT_TRUE(output.write(holding("half"), "{}").isOk());
    EXPECT_EQ(countEntries(), 1u);
  }
  EXPECT_EQ(countEntries(), 0u);
  {
    OutputFolder output(folder / "some/where/new");
    ASSERT_TRUE(output.write(holding("half"), "{}").isOk());
  }
  EXPECT_EQ(countEntries(), 0u) << "folders that were made for it";
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

/// Device and inode.
static std::pair<dev_t, ino_t> identify(const std::string &path) {
  struct stat about{};
  EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
  return {about.st_dev, about.st_ino};
}

// It may be somebody's working directory, or where a file system is mounted. Nor need the folder above be writable.
TEST_F(OutputFolderTest, AFolderThatIsThereStaysTheSame) {
  std::string target = folder / "above/artifact";
  fs::create_directories(target);
  auto before = identify(target);
  for (const char *contents : {"one", "two"}) { // empty, and with an artifact in it
    EXPECT_EQ(write(target, contents), "");
    EXPECT_EQ(identify(target), before) << contents;
    EXPECT_EQ(readFile(target + "/model.ortc"), contents);
    EXPECT_EQ(readFile(target + "/manifest.json"), std::string("manifest of ") + contents);
  }
  pid_t child = fork();
  if (child == 0) {
    bool isReady = chdir(target.c_str()) == 0 && chown(target.c_str(), 65534, 65534) == 0 &&
                   chmod((folder / "above").c_str(), 0555) == 0;
    for (const char *name : {"model.ortc", "manifest.json"})
      isReady = isReady && chown(name, 65534, 65534) == 0;
    if (geteuid() == 0 && (!isReady || setuid(65534) != 0)) // who may write anywhere
      _exit(99);
    _exit(write(".", "three").empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod((folder / "above").c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(identify(target), before);
  EXPECT_EQ(readFile(target + "/model.ortc"), "three");
  EXPECT_EQ(std::distance(fs::directory_iterator(target), fs::directory_iterator{}), 2);
}

// What a compilation that was killed has left is removed; what one that goes on is writing is not.
TEST_F(OutputFolderTest, RemovesWhatAKilledOneHasLeft) {
  std::string target = folder / "artifact";
  ASSERT_EQ(write(target, "one"), "");
  for (const char *name : {"model.ortc.ortc-a.tmp", "model.ortc.ortc-q.tmp", "manifest.json.ortc-b.tmp"})
    folder.write(std::string("artifact/") + name, "half");
  {
    OutputFolder other(target);
    ASSERT_TRUE(other.write(holding("other"), "manifest of other").isOk());
    ASSERT_EQ(write(target, "two"), "");
    EXPECT_EQ(readFile(target + "/model.ortc"), "two");
    EXPECT_EQ(std::distance(fs::directory_iterator(target), fs::directory_iterator{}), 4);
    ASSERT_EQ(other.commit().getMessage(), "");
  }
  EXPECT_EQ(readFile(target + "/manifest.json"), "manifest of other");
  EXPECT_EQ(std::distance(fs::directory_iterator(target), fs::directory_iterator{}), 2);
}

TEST_F(OutputFolderTest, AFailureLeavesBothFiles) {
  std::string target = folder / "artifact";
  ASSERT_EQ(write(target, "one"), "");
  OutputFolder output(target);
  ASSERT_TRUE(output.write(holding("two"), "manifest of two").isOk());
  fs::remove(target + "/model.ortc"); // a place that no file can be renamed to
  fs::create_directories(target + "/model.ortc/in");
  EXPECT_EQ(output.commit().getCode(), ExitCode::Failed);
  EXPECT_EQ(readFile(target + "/manifest.json"), "manifest of one");
}

// A manifest of another artifact would mislead; writers come in pairs here, to mix what they write.
TEST_F(OutputFolderTest, TheManifestIsThatOfTheArtifact) {
  std::string target = folder / "artifact";
  ASSERT_EQ(write(target, "0"), "");
  std::atomic<int> running = 2;
  std::vector<std::thread> writers;
  for (const char *name : {"a", "b"})
    writers.emplace_back([&, name] {
      for (int i = 0; i < 40; ++i)
        EXPECT_EQ(write(target, name + std::to_string(i)), "");
      --running;
    });
  int seen = 0;
  while (running > 0) {
    // Between two reads of one artifact there is the manifest of no other.
    std::string before = readFile(target + "/model.ortc"), manifest = readFile(target + "/manifest.json"),
                after = readFile(target + "/model.ortc");
    if (before != after || manifest.empty())
      continue;
    EXPECT_EQ(manifest, "manifest of " + before);
    ++seen;
  }
  for (std::thread &writer : writers)
    writer.join();
  EXPECT_GT(seen, 0);
  EXPECT_EQ(readFile(target + "/manifest.json"), "manifest of " + readFile(target + "/model.ortc"));
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
