// Builders of data files for tests, good and damaged ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/data/data_source.h"

namespace ortc::engine::test {

/// A folder that is removed with everything in it.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  /// Writes a file and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const;
  std::string operator/(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

std::string readFile(const std::string &path);

/// The little-endian bytes of a value.
template <typename T> std::string bytesOf(T value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof(T));
}
template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}
std::string big32(uint32_t value);

/// An npy file of version 1 with this header dict.
std::string npy(const std::string &dict, const std::string &data);
std::string npyOf(const std::string &descr, const std::string &shape, const std::string &data);

/// One member of a zip archive. What is not set follows from `content`.
struct ZipMember {
  std::string name, content;
  int method = 0;
  int flags = 0;
  int64_t crc = -1, compressed = -1, uncompressed = -1, offset = -1;
};
std::string zip(const std::vector<ZipMember> &members);

/// A member of a tar archive, with what is not set as it should be.
struct TarMember {
  std::string name, content;
  char type = '0';
  std::string prefix = "";
  std::string size = ""; ///< of 12 bytes
};

std::string tarOf(const std::vector<TarMember> &members, bool hasEnd = true);

std::string deflateRaw(const std::string &content);
std::string gzipOf(const std::string &content);
std::string safetensors(const std::string &header, const std::string &data);

/// An open source over arrays in memory.
struct NamedArray {
  std::string name;
  DataType type;
  Shape shape;
  std::string data;
};
std::unique_ptr<DataSource> makeSource(std::vector<NamedArray> arrays);

} // namespace ortc::engine::test
