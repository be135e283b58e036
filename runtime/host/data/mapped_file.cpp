// A read-only mapping of a whole file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/data/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc::host {

Status MappedFile::open(const std::string &path, std::shared_ptr<const MappedFile> &file) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Status::failure(path + ": cannot be opened: " + std::strerror(errno));
  std::shared_ptr<MappedFile> mapped(new MappedFile());
  struct stat about{};
  Status status;
  if (fstat(descriptor, &about) != 0) {
    status = Status::failure(path + ": cannot be read: " + std::strerror(errno));
  } else if (!S_ISREG(about.st_mode)) {
    status = Status::failure(path + ": is not a regular file");
  } else if (about.st_size > 0) {
    void *address = mmap(nullptr, size_t(about.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      status = Status::failure(path + ": cannot be mapped: " + std::strerror(errno));
    } else {
      mapped->data = static_cast<const uint8_t *>(address);
      mapped->bytes = size_t(about.st_size);
    }
  }
  close(descriptor);
  file = std::move(mapped);
  return status;
}

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<uint8_t *>(data), bytes);
}

void forgetPages(const uint8_t *data, size_t bytes) {
  static const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = uintptr_t(data) / page * page;
  madvise(reinterpret_cast<void *>(begin), uintptr_t(data) + bytes - begin, MADV_DONTNEED);
}

void swapBytes(uint8_t *data, size_t count, size_t elementBytes) {
  for (size_t i = 0; i < count; ++i)
    std::reverse(data + i * elementBytes, data + (i + 1) * elementBytes);
}

} // namespace ortc::host
