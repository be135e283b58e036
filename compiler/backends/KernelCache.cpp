// Code that LLVM has made before, in files of a folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/KernelCache.h"

#include "compiler/backends/EmissionStamp.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc::backends {

namespace {

/// A file: this, the digest of its key and its contents, and the contents.
constexpr llvm::StringLiteral kMagic = "ortc kernel 1\n";
/// The names that llvm::pruneCache knows begin so, temporary ones included.
constexpr llvm::StringLiteral kPrefix = "llvmcache-";

using Digest = llvm::BLAKE3Result<LLVM_BLAKE3_OUT_LEN>;

Digest digest(llvm::StringRef key, llvm::StringRef contents) {
  llvm::BLAKE3 hash;
  hash.update(key);
  hash.update(contents);
  return hash.final();
}

bool mayOthersWrite(const struct stat &facts) { return facts.st_mode & (S_IWGRP | S_IWOTH); }

/// The build of LLVM that runs: a package may be replaced by another one of the same version.
const std::string &llvmBuild() {
  static const std::string build = [] {
    std::string text = LLVM_VERSION_STRING;
    Dl_info library;
    struct stat facts;
    auto address = reinterpret_cast<const void *>(&llvm::WriteBitcodeToFile);
    if (::dladdr(address, &library) != 0 && ::stat(library.dli_fname, &facts) == 0)
      text += " " + std::to_string(facts.st_size) + " " + std::to_string(facts.st_mtim.tv_sec);
    return text;
  }();
  return build;
}

llvm::StringRef asText(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

} // namespace

Expected<std::unique_ptr<KernelCache>> KernelCache::open(const std::string &path, uint64_t mostBytes) {
  const std::string name = "--kernel-cache '" + path + "': ";
  if (std::error_code failed =
          llvm::sys::fs::create_directories(path, /*IgnoreExisting=*/true, llvm::sys::fs::owner_all);
      failed && failed != llvm::errc::file_exists)
    return Status::refusal(name + "the folder cannot be made: " + failed.message());
  struct stat facts;
  const std::string itself =
      path.substr(0, path.find_last_not_of('/') + 1); // "link/" is what the link leads to
  if (::lstat((itself.empty() ? path : itself).c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode))
    return Status::refusal(name +
                           "it is no folder, and no link is followed to code that is run; name a folder");
  if (facts.st_uid != ::geteuid())
    return Status::refusal(name + "it belongs to another user, and code from it is run; name a folder of "
                                  "your own");
  if (mayOthersWrite(facts))
    return Status::refusal(name +
                           "others may write there, and code from it is run; remove it, or name another "
                           "folder");
  return std::unique_ptr<KernelCache>(new KernelCache(path, mostBytes));
}

KernelCache::~KernelCache() {
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizeBytes = mostBytes;
  policy.MaxSizePercentageOfAvailableSpace = 0;
  if (mostBytes < kMostBytes) // a test's
    policy.Interval = std::chrono::seconds(0);
  llvm::pruneCache(path, policy);
}

std::string KernelCache::makeKey(const llvm::Module &module, llvm::StringRef how) {
  llvm::SmallString<0> bitcode;
  llvm::raw_svector_ostream stream(bitcode);
  // Passes walk over uses in their order.
  llvm::WriteBitcodeToFile(module, stream, /*ShouldPreserveUseListOrder=*/true);
  llvm::BLAKE3 hash;
  for (llvm::StringRef part :
       {llvm::StringRef(llvmBuild()), llvm::StringRef(kEmissionStamp), how, bitcode.str()}) {
    uint64_t size = part.size();
    hash.update({reinterpret_cast<const uint8_t *>(&size), sizeof size});
    hash.update(part);
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string KernelCache::placeOf(llvm::StringRef key) const {
  llvm::SmallString<128> place(path);
  llvm::sys::path::append(place, kPrefix + key);
  return std::string(place);
}

std::optional<std::string> KernelCache::find(llvm::StringRef key) const {
  const std::string place = placeOf(key);
  // A pipe would wait for ever, and no link is followed to code.
  int descriptor = ::open(place.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return std::nullopt;
  auto closes = llvm::scope_exit([&] { ::close(descriptor); });
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() ||
      mayOthersWrite(facts) || static_cast<uint64_t>(facts.st_size) > mostBytes)
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getOpenFile(descriptor, place, static_cast<uint64_t>(facts.st_size),
                                              /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  // What was used last is removed last, whatever the file system notes of reading.
  const struct timespec now[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::futimens(descriptor, now);
  llvm::StringRef text = (*file)->getBuffer();
  if (!text.consume_front(kMagic) || text.size() < LLVM_BLAKE3_OUT_LEN)
    return std::nullopt;
  llvm::StringRef written = text.take_front(LLVM_BLAKE3_OUT_LEN);
  llvm::StringRef contents = text.drop_front(LLVM_BLAKE3_OUT_LEN);
  if (asText(digest(key, contents)) != written)
    return std::nullopt;
  return contents.str();
}

void KernelCache::keep(llvm::StringRef key, llvm::StringRef contents) {
  const std::string place = placeOf(key);
  auto report = [&](const std::string &why) {
    std::lock_guard<std::mutex> lock(mutex);
    if (problem.empty())
      problem = "--kernel-cache '" + path + "': code of kernels cannot be kept there: " + why;
  };
  // Without LLVM's TempFile, which takes signals of the process.
  int descriptor;
  llvm::SmallString<128> temporary;
  if (std::error_code failed = llvm::sys::fs::createUniqueFile(
          place + "-%%%%%%%%.tmp", descriptor, temporary, llvm::sys::fs::OF_None,
          llvm::sys::fs::owner_read | llvm::sys::fs::owner_write))
    return report(failed.message());
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << kMagic << asText(digest(key, contents)) << contents;
  out.close();
  std::error_code failed = out.error();
  out.clear_error();
  if (!failed)
    failed = llvm::sys::fs::rename(temporary, place);
  if (!failed)
    return;
  llvm::sys::fs::remove(temporary);
  if (failed != std::errc::no_such_file_or_directory) // another process has made room
    report(failed.message());
}

std::string KernelCache::getProblem() const {
  std::lock_guard<std::mutex> lock(mutex);
  return problem;
}

} // namespace ortc::backends
