// A read-only mapping of a whole file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_HOST_DATA_MAPPED_FILE_H
#define ORTC_RUNTIME_HOST_DATA_MAPPED_FILE_H

#include <cstring>
#include <memory>
#include <string>

#include "runtime/host/status.h"

namespace ortc::host {

/// The bytes of a file, mapped; unmapped when the last owner goes.
class MappedFile {
public:
  static Status open(const std::string &path, std::shared_ptr<const MappedFile> &file);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const uint8_t *getData() const { return data; }
  size_t getBytes() const { return bytes; }
  /// Whether [offset, offset + count) lies inside.
  bool contains(uint64_t offset, uint64_t count) const { return offset <= bytes && count <= bytes - offset; }

private:
  MappedFile() = default;
  const uint8_t *data = nullptr;
  size_t bytes = 0;
};

/// Lets go of the pages that hold these bytes of a mapped file, which come back when they are read again: until then
/// they do not count as memory of this process.
void forgetPages(const uint8_t *data, size_t bytes);

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

} // namespace ortc::host

#endif // ORTC_RUNTIME_HOST_DATA_MAPPED_FILE_H
