// The cache of kernels: what it gives back, what it refuses, and what it does with files that are not its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/backends/KernelCache.h"
#include "test/engine/data_files.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace ortc;
using backends::KernelCache;

namespace {

class KernelCacheTest : public testing::Test {
protected:
  std::unique_ptr<KernelCache> open(uint64_t mostBytes = KernelCache::kMostBytes) {
    std::unique_ptr<KernelCache> cache;
    EXPECT_EQ(KernelCache::open(path, mostBytes).moveTo(cache).getMessage(), "");
    return cache;
  }
  std::string refusal() { return KernelCache::open(path).getStatus().getMessage(); }
  /// Of the only entry.
  std::string entry() {
    std::string found;
    for (const auto &each : std::filesystem::directory_iterator(path))
      if (each.path().filename().string().starts_with("llvmcache-"))
        found = each.path();
    return found;
  }

  engine::test::TemporaryFolder folder;
  const std::string path = folder / "deep/cache";
};

TEST_F(KernelCacheTest, GivesBackWhatWasKept) {
  auto cache = open();
  EXPECT_FALSE(cache->find("a"));
  std::string code("code\0of a", 9);
  cache->keep("a", code);
  cache->keep("b", "");
  EXPECT_EQ(cache->getProblem(), "");
  EXPECT_EQ(cache->find("a"), code);
  EXPECT_EQ(cache->find("b"), "");
  EXPECT_FALSE(cache->find("c"));
  EXPECT_EQ(open()->find("a"), code); // as another process does
}

TEST_F(KernelCacheTest, IsForItsOwnerOnly) {
  mode_t before = umask(0);
  open()->keep("a", "code");
  umask(before);
  struct stat facts;
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(entry().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(KernelCacheTest, RefusesFoldersThatOthersMayWrite) {
  open();
  for (mode_t mode : {0770, 0702}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(refusal(),
              "--kernel-cache '" + path +
                  "': others may write there, and code from it is run; remove it, or name another folder");
  }
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(KernelCacheTest, RefusesFoldersOfOthers) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give a folder away";
  open();
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal(),
            "--kernel-cache '" + path +
                "': it belongs to another user, and code from it is run; name a folder of your own");
}

TEST_F(KernelCacheTest, RefusesWhatIsNoFolder) {
  std::filesystem::create_directories(folder / "deep");
  folder.write("deep/cache", "a file");
  const std::string no = "--kernel-cache '" + path +
                         "': it is no folder, and no link is followed to code that is run; "
                         "name a folder";
  EXPECT_EQ(refusal(), no);
  std::filesystem::remove(path);
  std::filesystem::create_directory(folder / "other");
  std::filesystem::create_directory_symlink(folder / "other", path);
  EXPECT_EQ(refusal(), no);
  EXPECT_NE(KernelCache::open(path + "/").getStatus().getMessage(), "") << "the link, not where it leads";
  std::filesystem::remove_all(folder / "deep");
  folder.write("deep", "a file");
  EXPECT_EQ(refusal(), "--kernel-cache '" + path + "': the folder cannot be made: Not a directory");
}

// A byte less, a byte more, another byte, and an entry under the name of another.
TEST_F(KernelCacheTest, DamagedAndForeignEntriesAreNotThere) {
  auto cache = open();
  cache->keep("a", "some code");
  const std::string place = entry(), whole = engine::test::readFile(place);
  auto findIn = [&](const std::string &bytes) {
    folder.write("deep/cache/" + std::filesystem::path(place).filename().string(), bytes);
    return cache->find("a").has_value();
  };
  EXPECT_TRUE(findIn(whole));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    EXPECT_FALSE(findIn(changed)) << i;
    EXPECT_FALSE(findIn(whole.substr(0, i))) << i;
  }
  EXPECT_FALSE(findIn(whole + "x"));
  EXPECT_TRUE(findIn(whole));
  std::filesystem::copy_file(place, path + "/llvmcache-b");
  EXPECT_FALSE(cache->find("b"));
  std::filesystem::create_directory(path + "/llvmcache-c");
  EXPECT_FALSE(cache->find("c"));
  ASSERT_EQ(mkfifo((path + "/llvmcache-d").c_str(), 0600), 0);
  EXPECT_FALSE(cache->find("d")); // and it does not wait
  std::error_code failed;
  std::filesystem::resize_file(place, uint64_t(3) << 40, failed); // which takes no room
  if (!failed) {
    alarm(20);
    EXPECT_FALSE(cache->find("a")); // and nobody reads it all
    alarm(0);
  }
  cache->keep("b", "code of b"); // in its place
  EXPECT_EQ(cache->find("b"), "code of b");
}

// Whoever could write an entry could also make its digest.
TEST_F(KernelCacheTest, EntriesOfOthersAreNotThere) {
  auto cache = open();
  cache->keep("a", "some code");
  const std::string place = entry();
  ASSERT_TRUE(cache->find("a"));
  for (mode_t mode : {0620, 0602}) {
    ASSERT_EQ(chmod(place.c_str(), mode), 0);
    EXPECT_FALSE(cache->find("a"));
  }
  ASSERT_EQ(chmod(place.c_str(), 0600), 0);
  ASSERT_TRUE(cache->find("a"));
  std::filesystem::rename(place, folder / "elsewhere");
  std::filesystem::create_symlink(folder / "elsewhere", place);
  EXPECT_FALSE(cache->find("a"));
  std::filesystem::remove(place);
  std::filesystem::rename(folder / "elsewhere", place);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(place.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(cache->find("a"));
  }
}

TEST_F(KernelCacheTest, RemovesWhatIsTooMuch) {
  for (int i = 0; i < 8; ++i) {
    auto cache = open(4096);
    cache->keep("key" + std::to_string(i), std::string(1000, 'x'));
    EXPECT_TRUE(cache->find("key0")) << "it was read a moment ago";
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the clock of files is coarse
  }
  EXPECT_TRUE(open()->find("key0"));
  EXPECT_FALSE(open()->find("key2"));
  uint64_t bytes = 0, count = 0;
  for (const auto &each : std::filesystem::directory_iterator(path))
    if (each.path().filename().string().starts_with("llvmcache-"))
      bytes += each.file_size(), ++count;
  EXPECT_LE(bytes, 4096u);
  EXPECT_GE(count, 1u);
}

TEST_F(KernelCacheTest, AFullDiskIsReportedOnceAndLeavesNothing) {
  auto cache = open();
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = {100, before.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  cache->keep("a", std::string(1000, 'x'));
  cache->keep("b", std::string(1000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(cache->getProblem(),
            "--kernel-cache '" + path + "': code of kernels cannot be kept there: File too large");
  EXPECT_EQ(entry(), "");
  EXPECT_FALSE(cache->find("a"));
}

TEST_F(KernelCacheTest, KeysAreOfTheModuleAndOfWhatLlvmIsTold) {
  llvm::LLVMContext context;
  auto make = [&](uint32_t number) {
    auto module = std::make_unique<llvm::Module>("ortc", context);
    llvm::IRBuilder<> builder(context);
    auto *type = llvm::FunctionType::get(builder.getInt32Ty(), false);
    auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", *module);
    builder.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
    builder.CreateRet(builder.getInt32(number));
    return module;
  };
  const std::string key = KernelCache::makeKey(*make(1), "znver5");
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(KernelCache::makeKey(*make(1), "znver5"), key);
  EXPECT_NE(KernelCache::makeKey(*make(2), "znver5"), key);
  EXPECT_NE(KernelCache::makeKey(*make(1), "znver4"), key);
}

} // namespace
