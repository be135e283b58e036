// A file that appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/data/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ortc::host {

AtomicFile::AtomicFile(std::string path) : path(std::move(path)), temporary(this->path + ".tmp") {}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
    ::unlink(temporary.c_str());
  }
}

Status AtomicFile::fail(const char *what) {
  return Status::failure(path + ": cannot be " + what + ": " + std::strerror(errno));
}

Status AtomicFile::open() {
  descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return descriptor < 0 ? fail("written") : Status();
}

Status AtomicFile::write(const void *data, size_t bytes) {
  auto from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::write(descriptor, from, bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail("written");
    from += count;
    bytes -= size_t(count);
  }
  return Status();
}

Status AtomicFile::commit() {
  if (::fsync(descriptor) != 0)
    return fail("written");
  int done = ::close(descriptor);
  descriptor = -1;
  if (done == 0 && std::rename(temporary.c_str(), path.c_str()) == 0)
    return Status();
  Status status = fail("written");
  ::unlink(temporary.c_str());
  return status;
}

} // namespace ortc::host
