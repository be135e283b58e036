// A file that appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/data/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/host/data/output_paths.h"

namespace ortc::host {

AtomicFile::AtomicFile(std::string path) : path(std::move(path)) {}

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
  ORTC_TRY(resolveOutput(path, place));
  static std::atomic<unsigned> counter;
  do { // other processes, other threads, and what a killed process has left are in nobody's way
    temporary = place + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
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
  if (done == 0 && std::rename(temporary.c_str(), place.c_str()) == 0)
    return Status();
  Status status = fail("written");
  ::unlink(temporary.c_str());
  return status;
}

} // namespace ortc::host
