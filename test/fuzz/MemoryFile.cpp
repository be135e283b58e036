// Files in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/Target.h"

#include <sys/mman.h>
#include <unistd.h>

namespace ortc::fuzz {

MemoryFile::MemoryFile(Input contents) : descriptor(memfd_create("fuzz", MFD_CLOEXEC)) {
  demand(descriptor >= 0, "no file in memory");
  for (size_t at = 0; at < contents.size();) {
    ssize_t written = write(descriptor, contents.data() + at, contents.size() - at);
    demand(written > 0, "the file in memory cannot be written");
    at += size_t(written);
  }
  path = "/proc/self/fd/" + std::to_string(descriptor);
}

MemoryFile::~MemoryFile() { close(descriptor); }

} // namespace ortc::fuzz
