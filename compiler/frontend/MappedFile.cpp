// A file mapped read-only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc::frontend {

Status MappedFile::open(const std::string &path, size_t limit, std::shared_ptr<const MappedFile> &file) {
  std::string quoted = "'" + path + "'";
  // Non-blocking, so that a FIFO in place of the file is refused rather than waited for.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return Status::refusal("cannot open " + quoted + ": " + std::strerror(errno));
  struct stat info{};
  int failed = fstat(descriptor, &info);
  if (failed || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return Status::refusal(quoted + " is not a regular file");
  }
  size_t size = static_cast<size_t>(info.st_size);
  if (size > limit) {
    close(descriptor);
    return Status::refusal(quoted + " has " + std::to_string(size) + " bytes, the limit is " +
                           std::to_string(limit));
  }
  void *address = nullptr;
  if (size) {
    address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      std::string reason = std::strerror(errno);
      close(descriptor);
      return Status::refusal("cannot map " + quoted + ": " + reason);
    }
  }
  std::shared_ptr<MappedFile> mapped(new MappedFile);
  mapped->descriptor = descriptor;
  mapped->changed = info.st_mtim;
  mapped->address = address;
  mapped->size = size;
  file = std::move(mapped);
  return {};
}

MappedFile::~MappedFile() {
  if (address)
    munmap(address, size);
  close(descriptor);
}

void MappedFile::forget() const {
  if (address)
    madvise(address, size, MADV_DONTNEED);
}

bool MappedFile::isUnchanged() const {
  struct stat info{};
  return fstat(descriptor, &info) == 0 && static_cast<size_t>(info.st_size) == size &&
         info.st_mtim.tv_sec == changed.tv_sec && info.st_mtim.tv_nsec == changed.tv_nsec;
}

} // namespace ortc::frontend
