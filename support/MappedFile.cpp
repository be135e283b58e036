// A read-only mapping of a whole file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/MappedFile.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ortc {

static const char kNotRegular[] = ": is not a regular file";

Status MappedFile::open(const std::string &path, std::shared_ptr<const MappedFile> &file) {
  std::shared_ptr<MappedFile> mapped(new MappedFile());
  mapped->path = path;
  mapped->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (mapped->descriptor < 0)
    return Status::failure(path + ": cannot be opened: " + std::strerror(errno));
  struct stat about{};
  if (fstat(mapped->descriptor, &about) != 0)
    return Status::failure(path + ": cannot be read: " + std::strerror(errno));
  if (!S_ISREG(about.st_mode))
    return Status::failure(path + kNotRegular);
  mapped->changed = about.st_mtim;
  if (about.st_size > 0) {
    void *address = mmap(nullptr, size_t(about.st_size), PROT_READ, MAP_PRIVATE, mapped->descriptor, 0);
    if (address == MAP_FAILED)
      return Status::failure(path + ": cannot be mapped: " + std::strerror(errno));
    mapped->data = static_cast<const uint8_t *>(address);
    mapped->bytes = size_t(about.st_size);
  }
  file = std::move(mapped);
  return Status();
}

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<uint8_t *>(data), bytes);
  if (descriptor >= 0)
    close(descriptor);
}

bool MappedFile::isUnchanged() const {
  struct stat about{};
  return fstat(descriptor, &about) == 0 && uint64_t(about.st_size) == bytes &&
         about.st_mtim.tv_sec == changed.tv_sec && about.st_mtim.tv_nsec == changed.tv_nsec;
}

Status MappedFile::refuseChange() const {
  return Status::failure(
      path + ": has changed since it was opened; while a file is in use, write a new one and rename "
             "it");
}

Status MappedFile::checkUnchanged() const { return isUnchanged() ? Status() : refuseChange(); }

Status checkRegularFile(const std::string &path) {
  struct stat about{};
  if (stat(path.c_str(), &about) != 0)
    return Status::failure(path + ": cannot be opened: " + std::strerror(errno));
  return S_ISREG(about.st_mode) ? Status() : Status::failure(path + kNotRegular);
}

void forgetPages(const uint8_t *data, size_t bytes) {
  if (!bytes)
    return;
  static const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = uintptr_t(data) / page * page;
  madvise(reinterpret_cast<void *>(begin), uintptr_t(data) + bytes - begin, MADV_DONTNEED);
}

void swapBytes(uint8_t *data, size_t count, size_t elementBytes) {
  for (size_t i = 0; i < count; ++i)
    std::reverse(data + i * elementBytes, data + (i + 1) * elementBytes);
}

} // namespace ortc
