// A read-only mapping of a whole file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "support/FileGuard.h"
#include "support/Status.h"

namespace ortc {

/// The bytes of a regular file, mapped; unmapped when the last owner goes. Nothing waits for the writer of a pipe.
class MappedFile {
public:
  static Status open(const std::string &path, std::shared_ptr<const MappedFile> &file);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const uint8_t *getData() const { return data; }
  size_t getBytes() const { return bytes; }
  std::string_view getText() const { return {reinterpret_cast<const char *>(data), bytes}; }
  /// Whether the file has the size and the time of change that it had when it was opened. One that shrinks meanwhile
  /// faults, as with any mapping, but for the rest of its last page, which reads as zeros.
  bool isUnchanged() const;
  /// Fails, with what to do, where it is not. Others may write to a file while it is parsed.
  Status checkUnchanged() const;
  /// That failure.
  Status refuseChange() const;
  /// Whether [offset, offset + count) lies inside.
  bool contains(uint64_t offset, uint64_t count) const { return offset <= bytes && count <= bytes - offset; }

  /// Calls `copy`, which copies from these bytes and owns nothing. Fails when the file was cut or written to
  /// since it was opened: then what was copied may be anything.
  template <typename Copy> Status read(const Copy &copy) const {
    return readGuarded(data, bytes, copy) ? checkUnchanged() : refuseChange();
  }

private:
  MappedFile() = default;

  std::string path;
  int descriptor = -1;
  struct timespec changed{};
  const uint8_t *data = nullptr;
  size_t bytes = 0;
};

/// Lets go of the pages that hold these bytes of a mapped file, which come back when they are read again: until then
/// they do not count as memory of this process.
void forgetPages(const uint8_t *data, size_t bytes);

/// Fails unless there is a regular file, or a link to one: whoever opens anything else may wait for ever.
Status checkRegularFile(const std::string &path);

/// Little-endian and big-endian loads from any address.
template <typename T> T loadLittle(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
inline uint32_t loadBig32(const uint8_t *from) {
  return uint32_t(from[0]) << 24 | uint32_t(from[1]) << 16 | uint32_t(from[2]) << 8 | from[3];
}

/// Reverses the bytes of each of `count` elements in place.
void swapBytes(uint8_t *data, size_t count, size_t elementBytes);

} // namespace ortc
