// A file that appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_HOST_DATA_ATOMIC_FILE_H
#define ORTC_RUNTIME_HOST_DATA_ATOMIC_FILE_H

#include <cstddef>
#include <string>

#include "runtime/host/status.h"

namespace ortc::host {

/// Writes a file of its own beside `path`; commit() flushes it to the disk and renames it. Without commit() it is
/// removed. Where `path` is a link, that is done beside its target. Refuses to replace what is no regular file.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  Status open();
  Status write(const void *data, size_t bytes);
  Status write(const std::string &text) { return write(text.data(), text.size()); }
  Status commit();

private:
  Status fail(const char *what);
  std::string path, place, temporary; ///< place: path without links
  int descriptor = -1;
};

} // namespace ortc::host

#endif // ORTC_RUNTIME_HOST_DATA_ATOMIC_FILE_H
