// An object of a GPU's code as a shared object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/SharedObject.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace ortc::gpu {

namespace {

/// A folder that goes with all it holds.
class Folder {
public:
  Status create() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("ortc-gpu", path))
      return Status::failure("cannot make a temporary folder: " + error.message());
    return {};
  }
  ~Folder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const std::string &name) const {
    llvm::SmallString<128> whole(path);
    llvm::sys::path::append(whole, name);
    return whole.str().str();
  }

private:
  llvm::SmallString<128> path;
};

} // namespace

Expected<std::vector<uint8_t>> linkSharedObject(const std::string &object) {
  static std::mutex one; // the linker keeps its state in globals
  std::lock_guard<std::mutex> lock(one);
  Folder folder;
  ORTC_TRY(folder.create());
  std::string input = folder.file("in.o"), output = folder.file("out");
  std::error_code error;
  llvm::raw_fd_ostream file(input, error);
  file << object;
  file.close();
  if (error || file.has_error())
    return Status::failure("cannot write " + input + ": " + (error ? error : file.error()).message());
  const char *arguments[] = {"ld.lld", "-shared", "--no-undefined", "-o", output.c_str(), input.c_str()};
  std::string text;
  llvm::raw_string_ostream messages(text);
  lld::Result result = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return Status::failure("linking the GPU's code failed: " + text);
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return Status::failure("cannot read what was linked: " + linked.getError().message());
  return std::vector<uint8_t>((*linked)->getBufferStart(), (*linked)->getBufferEnd());
}

} // namespace ortc::gpu
