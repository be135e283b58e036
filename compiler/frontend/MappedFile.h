// A file mapped read-only.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Status.h"

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace ortc::frontend {

/// The bytes of a file, mapped for as long as the object lives. A file that shrinks meanwhile faults, as with
/// any mapping, but for the rest of its last page, which reads as zeros.
class MappedFile {
public:
  /// Fails for a missing file, for anything but a regular file, and above `limit` bytes.
  static Status open(const std::string &path, size_t limit, std::shared_ptr<const MappedFile> &file);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::string_view bytes() const { return {static_cast<const char *>(address), size}; }
  /// Gives back the memory of its pages; what is used again is read again.
  void forget() const;
  /// Whether the file has the size and the time of change that it had when it was opened.
  bool isUnchanged() const;

private:
  MappedFile() = default;
  int descriptor = -1;
  struct timespec changed = {};
  void *address = nullptr;
  size_t size = 0;
};

} // namespace ortc::frontend
