// Code that LLVM has made before, in files of a folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Found by the LLVM IR that it was made from, with all that LLVM is told beside it: a changed pass or generator misses
// only the kernels that it changes. Decision 0065 has the figures.
#pragma once

#include "support/Expected.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace llvm {
class Module;
}

namespace ortc::backends {

/// A cache of code. Its functions may be called from several threads, and several processes may share a folder.
class KernelCache {
public:
  /// The most that files of a folder take: those that were not used for longest are removed first.
  static constexpr uint64_t kMostBytes = uint64_t(2) << 30;

  /// Makes the folder where it is missing. Refuses what is no folder, a link, and a folder that is another user's or
  /// that others may write: what is found there is run.
  static Expected<std::unique_ptr<KernelCache>> open(const std::string &path,
                                                     uint64_t mostBytes = kMostBytes);
  /// Removes what is too much.
  ~KernelCache();

  /// The name of the code that LLVM makes of `module`. `how`: what else decides about it, such as the processor.
  static std::string makeKey(const llvm::Module &module, llvm::StringRef how);

  /// The code that was kept under `key`; nothing where it is not there, not as it was written, or in a file that
  /// others may have written.
  std::optional<std::string> find(llvm::StringRef key) const;
  /// Keeps `contents`, readable by their owner only. A failure is no error: see getProblem().
  void keep(llvm::StringRef key, llvm::StringRef contents);

  /// Why something could not be kept, in words for a note; empty where everything was.
  std::string getProblem() const;

private:
  KernelCache(std::string path, uint64_t mostBytes) : path(std::move(path)), mostBytes(mostBytes) {}
  std::string placeOf(llvm::StringRef key) const;

  const std::string path;
  const uint64_t mostBytes;
  mutable std::mutex mutex;
  std::string problem;
};

} // namespace ortc::backends
