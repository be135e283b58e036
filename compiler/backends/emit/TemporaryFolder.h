// A folder for programs that take and write files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace ortc::emit {

/// A folder of its own below that of temporary files; it goes with all it holds.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }

  Status create() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("ortc", path))
      return Status::failure("cannot make a temporary folder: " + error.message());
    return {};
  }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> whole(path);
    llvm::sys::path::append(whole, name);
    return whole.str().str();
  }
  Status write(llvm::StringRef name, llvm::StringRef contents) const {
    std::error_code error;
    llvm::raw_fd_ostream stream(file(name), error);
    stream << contents;
    stream.close();
    if (!error)
      error = stream.error();
    stream.clear_error();
    return error ? Status::failure("cannot write " + file(name) + ": " + error.message()) : Status();
  }

private:
  llvm::SmallString<128> path;
};

} // namespace ortc::emit
