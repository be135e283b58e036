// What a command may write over: never its own inputs, never what is no regular file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "engine/data/writers.h"
#include "support/AtomicFile.h"
#include "support/OutputPaths.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace fs = std::filesystem;

namespace {

class OutputPathsTest : public testing::Test {
protected:
  Status write(const std::string &path, const std::string &text) {
    AtomicFile file(path);
    ORTC_TRY(file.open());
    ORTC_TRY(file.write(text));
    return file.commit();
  }
  auto countEntries() { return std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator{}); }
  TemporaryFolder folder;
};

} // namespace

TEST_F(OutputPathsTest, AnOutputIsNoInputWhateverItsName) {
  std::string data = folder.write("data.npz", "data"), hard = folder / "hard.npz", link = folder / "link.npz";
  fs::create_hard_link(data, hard);
  fs::create_symlink("data.npz", link);
  for (const std::string &path : {data, hard, link, folder / "./data.npz"}) {
    Status status = checkOutputs({{"--data", data}}, {{"--save", ""}, {"--metrics", path}});
    EXPECT_EQ(status.getCode(), ExitCode::Refused);
    EXPECT_EQ(status.getMessage(),
              "--metrics " + path + " would overwrite --data " + data + "; name another file");
  }
  EXPECT_TRUE(checkOutputs({{"--data", data}}, {{"--metrics", folder / "new"}}).isOk());
  EXPECT_TRUE(checkOutputs({{"--data", folder / "none"}}, {{"--metrics", data}}).isOk());
}

TEST_F(OutputPathsTest, OutputsAreNotEachOther) {
  std::string one = folder / "one", again = folder / "./one", link = folder / "link";
  fs::create_symlink(one, link);
  for (const std::string &path : {one, again, link})
    EXPECT_EQ(checkOutputs({}, {{"--save", one}, {"--metrics", path}}).getMessage(),
              "--metrics " + path + " would overwrite --save " + one + "; name another file");
  EXPECT_TRUE(checkOutputs({}, {{"--save", one}, {"--metrics", folder / "two"}}).isOk());
}

TEST_F(OutputPathsTest, AnArtifactIsItsFiles) {
  fs::create_directory(folder / "artifact");
  std::string model = folder.write("artifact/model.ortc", "code");
  for (const std::string &artifact : {folder / "artifact", folder / "artifact/", model})
    EXPECT_FALSE(checkOutputs(listArtifactFiles(artifact), {{"-o", model}}).isOk()) << artifact;
  EXPECT_EQ(checkOutputs(listArtifactFiles(folder / "artifact"), {{"-o", model}}).getMessage(),
            "-o " + model + " would overwrite the artifact's " + model + "; name another file");
}

TEST_F(OutputPathsTest, OnlyRegularFilesAreReplaced) {
  std::string pipe = folder / "pipe", link = folder / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", link);
  for (const std::string &path : {pipe, link}) {
    Status status = writeNpz(path, {});
    EXPECT_EQ(status.getCode(), ExitCode::Refused);
    EXPECT_EQ(status.getMessage(), path + ": is no regular file, which is not replaced; name another file");
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(write(folder / "", "x").getMessage(),
            (folder / "") + ": is a folder, which is not replaced; name another file");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(write(folder / "loop", "x").getMessage(),
            (folder / "loop") + ": is a link that leads nowhere; name another file");
  EXPECT_EQ(countEntries(), 3);
}

TEST_F(OutputPathsTest, NothingIsWrittenIntoAFolderThatIsReplaced) {
  fs::create_directory(folder / "artifact");
  fs::create_directory_symlink("artifact", folder / "link");
  fs::create_symlink("artifact/file", folder / "file");
  for (const std::string &place : {folder / "artifact", folder / "artifact/", folder / "link"})
    for (const std::string &path : {folder / "artifact/file", folder / "link/new/file", folder / "file",
                                    folder / "nowhere/../artifact/file", folder / "artifact/."}) {
      Status status = checkOutside({"-o", place}, {"--report", path});
      EXPECT_EQ(status.getCode(), ExitCode::Refused) << place << " " << path;
      EXPECT_EQ(status.getMessage(), "--report " + path + " would lie in -o " + place +
                                         ", which is replaced whole; name a place outside");
    }
  EXPECT_FALSE(checkOutside({"-o", folder / "new"}, {"--report", folder / "new/file"}).isOk());
  for (const std::string &path : {folder / "artifact.json", folder / "artifact/../file.json", folder / "new"})
    EXPECT_TRUE(checkOutside({"-o", folder / "artifact/"}, {"--report", path}).isOk()) << path;
}

TEST_F(OutputPathsTest, TheFolderOfAFileIsThere) {
  fs::create_symlink("missing/file", folder / "link");
  EXPECT_TRUE(checkFolderOf(folder / "new").isOk());
  EXPECT_TRUE(checkFolderOf("relative").isOk());
  for (const char *name : {"missing/file", "link"})
    EXPECT_EQ(checkFolderOf(folder / name).getMessage(), (folder / name) + ": the folder " +
                                                             (folder / "missing") +
                                                             " is not there or cannot be written");
  EXPECT_EQ(checkFolderOf("missing/file").getMessage(),
            "missing/file: the folder missing is not there or cannot be written");
}

TEST_F(OutputPathsTest, AFileThatIsWrittenAtTheEndCanBeMade) {
  NamedFile artifact{"-o", folder / "artifact"};
  auto check = [&](const std::string &path) { return checkNewFile(artifact, {"--report", path}); };
  EXPECT_TRUE(check("").isOk());
  EXPECT_TRUE(check(folder / "new").isOk());
  EXPECT_TRUE(check(folder.write("old", "text")).isOk());
  EXPECT_EQ(check(folder / "artifact/new").getCode(), ExitCode::Refused);
  EXPECT_EQ(check(folder / "").getMessage(),
            (folder / "") + ": is a folder, which is not replaced; name another file");
  EXPECT_EQ(check(folder / "").getCode(), ExitCode::Refused);
  Status status = check(folder / "missing/report.json");
  EXPECT_EQ(status.getCode(), ExitCode::Failed);
  EXPECT_EQ(status.getMessage(),
            "cannot write '" + (folder / "missing/report.json") + "': No such file or directory");
}

TEST_F(OutputPathsTest, FilesAppearTogether) {
  {
    AtomicFiles files;
    EXPECT_TRUE(files.add(folder / "one", "1").isOk());
    EXPECT_TRUE(files.add("", "none").isOk());
    EXPECT_FALSE(files.add(folder / "missing/two", "2").isOk());
    EXPECT_FALSE(fs::exists(folder / "one"));
  }
  EXPECT_EQ(countEntries(), 0);
  AtomicFiles files;
  EXPECT_TRUE(files.add(folder / "one", "1").isOk() && files.add(folder / "two", "2").isOk());
  EXPECT_TRUE(files.commit().isOk());
  EXPECT_EQ(readFile(folder / "one") + readFile(folder / "two"), "12");
  EXPECT_EQ(countEntries(), 2);
}

TEST_F(OutputPathsTest, ALinkStaysALink) {
  fs::create_directory(folder / "elsewhere");
  folder.write("elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", folder / "link");
  fs::create_symlink(folder / "elsewhere/new", folder / "dangling");
  EXPECT_TRUE(write(folder / "link", "one").isOk());
  EXPECT_TRUE(write(folder / "dangling", "two").isOk());
  EXPECT_TRUE(fs::is_symlink(folder / "link") && fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(readFile(folder / "elsewhere/file"), "one");
  EXPECT_EQ(readFile(folder / "elsewhere/new"), "two");
  EXPECT_EQ(countEntries(), 3);
}

// Files that somebody has locked are being written. Others of that name were left by a process that was
// killed. What has no such name is none of ours.
TEST_F(OutputPathsTest, RemovesWhatAKilledProcessHasLeft) {
  std::string path = folder / "file", live = folder.write("file.ortc-b.tmp", "live");
  for (const char *name : {"file.ortc-a.tmp", "file.ortc-z.tmp"})
    folder.write(name, "left");
  const char *others[] = {"file.tmp", "file.ortc-A.tmp", "file.ortc-ab.tmp", "other.ortc-a.tmp",
                          "file.0.tmp"};
  for (const char *name : others)
    folder.write(name, "kept");
  fs::create_symlink("file.tmp", folder / "file.ortc-d.tmp");
  int file = open(live.c_str(), O_RDONLY);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  EXPECT_EQ(write(path, "new").getMessage(), "");
  EXPECT_EQ(readFile(path), "new");
  for (const char *name : others)
    EXPECT_EQ(readFile(folder / name), "kept") << name;
  EXPECT_EQ(readFile(live), "live");
  EXPECT_EQ(countEntries(), 8);
  close(file);
  EXPECT_EQ(write(path, "again").getMessage(), "");
  EXPECT_FALSE(fs::exists(live));
  EXPECT_EQ(countEntries(), 7);
}

// As many as can write at the same time have names; one more says so and takes nobody's.
TEST_F(OutputPathsTest, NamesDoNotCollide) {
  std::string path = folder / "file";
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (int i = 0; i < 26; ++i) {
    files.push_back(std::make_unique<AtomicFile>(path));
    ASSERT_EQ(files.back()->open().getMessage(), "");
    ASSERT_TRUE(files.back()->write(std::to_string(i)).isOk());
  }
  EXPECT_EQ(write(path, "x").getMessage(), path + ": cannot be written: File exists");
  EXPECT_EQ(countEntries(), 26);
  for (int i = 0; i < 26; ++i) {
    ASSERT_EQ(files[size_t(i)]->commit().getMessage(), "");
    EXPECT_EQ(readFile(path), std::to_string(i));
  }
  EXPECT_EQ(countEntries(), 1);
}

TEST_F(OutputPathsTest, WritersOfOnePathDoNotDisturbEachOther) {
  std::string path = folder / "file";
  std::atomic<int> failures = 0;
  std::vector<std::thread> writers;
  for (char letter : {'a', 'b', 'c'})
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 50; ++i)
        failures += !write(path, std::string(5000, letter)).isOk();
    });
  for (std::thread &writer : writers)
    writer.join();
  EXPECT_EQ(failures, 0);
  std::string text = readFile(path);
  EXPECT_EQ(text, std::string(5000, text[0]));
  EXPECT_EQ(countEntries(), 1);
}
