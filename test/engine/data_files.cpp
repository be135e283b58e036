// Builders of data files for tests, good and damaged ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/engine/data_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <zlib.h>

namespace ortc::engine::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ortc-test-XXXXXX").string();
  path = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string TemporaryFolder::write(const std::string &name, const std::string &bytes) const {
  std::string where = path + "/" + name;
  std::ofstream(where, std::ios::binary) << bytes;
  return where;
}

std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string big32(uint32_t value) {
  return {char(value >> 24), char(value >> 16 & 255), char(value >> 8 & 255), char(value & 255)};
}

std::string npy(const std::string &dict, const std::string &data) {
  return std::string("\x93NUMPY\x01\x00", 8) + bytesOf(uint16_t(dict.size())) + dict + data;
}

std::string npyOf(const std::string &descr, const std::string &shape, const std::string &data) {
  return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n", data);
}

std::string deflateRaw(const std::string &content) {
  std::string result(content.size() + 1024, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = uInt(content.size());
  stream.next_out = reinterpret_cast<Bytef *>(result.data());
  stream.avail_out = uInt(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string gzipOf(const std::string &content) {
  std::string head("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  auto crc = uint32_t(crc32(0, reinterpret_cast<const Bytef *>(content.data()), uInt(content.size())));
  return head + deflateRaw(content) + bytesOf(crc) + bytesOf(uint32_t(content.size()));
}

std::string zip(const std::vector<ZipMember> &members) {
  std::string file, directory;
  for (const ZipMember &member : members) {
    std::string data = member.method == 8 ? deflateRaw(member.content) : member.content;
    auto crc = uint32_t(
        crc32(0, reinterpret_cast<const Bytef *>(member.content.data()), uInt(member.content.size())));
    std::string common =
        bytesOf(uint16_t(20)) + bytesOf(uint16_t(member.flags)) + bytesOf(uint16_t(member.method)) +
        bytesOf(uint32_t(0)) + bytesOf(uint32_t(member.crc < 0 ? crc : member.crc)) +
        bytesOf(uint32_t(member.compressed < 0 ? int64_t(data.size()) : member.compressed)) +
        bytesOf(uint32_t(member.uncompressed < 0 ? int64_t(member.content.size()) : member.uncompressed)) +
        bytesOf(uint16_t(member.name.size())) + bytesOf(uint16_t(0));
    directory += "PK\x01\x02" + bytesOf(uint16_t(20)) + common + std::string(10, '\0') +
                 bytesOf(uint32_t(member.offset < 0 ? int64_t(file.size()) : member.offset)) + member.name;
    file += "PK\x03\x04" + common + member.name + data;
  }
  std::string end = "PK\x05\x06" + bytesOf(uint32_t(0)) + bytesOf(uint16_t(members.size())) +
                    bytesOf(uint16_t(members.size())) + bytesOf(uint32_t(directory.size())) +
                    bytesOf(uint32_t(file.size())) + bytesOf(uint16_t(0));
  return file + directory + end;
}

std::string safetensors(const std::string &header, const std::string &data) {
  return bytesOf(uint64_t(header.size())) + header + data;
}

namespace {

class MemorySource final : public DataSource {
public:
  explicit MemorySource(std::vector<NamedArray> arrays)
      : DataSource("data.npz"), arrays(std::make_shared<std::vector<NamedArray>>(std::move(arrays))) {
    for (const NamedArray &array : *this->arrays)
      names.push_back(array.name);
  }
  Status load(const std::string &name, Array &array) const override {
    for (const NamedArray &from : *arrays)
      if (from.name == name)
        array = {name,
                 from.type,
                 from.shape,
                 reinterpret_cast<const uint8_t *>(from.data.data()),
                 from.data.size(),
                 arrays};
    return Status();
  }

private:
  std::shared_ptr<std::vector<NamedArray>> arrays;
};

} // namespace

std::unique_ptr<DataSource> makeSource(std::vector<NamedArray> arrays) {
  return std::make_unique<MemorySource>(std::move(arrays));
}

std::string tarOf(const std::vector<TarMember> &members, bool hasEnd) {
  std::string file;
  for (const TarMember &member : members) {
    std::string header(512, '\0');
    auto put = [&](size_t at, const std::string &text) { header.replace(at, text.size(), text); };
    put(0, member.name);
    char size[16];
    std::snprintf(size, sizeof size, "%011lo", static_cast<unsigned long>(member.content.size()));
    put(124, member.size.empty() ? size : member.size);
    put(148, "        ");
    header[156] = member.type;
    put(257, std::string("ustar\00000", 8));
    put(345, member.prefix);
    unsigned sum = 0;
    for (unsigned char byte : header)
      sum += byte;
    std::snprintf(size, sizeof size, "%06o", sum);
    put(148, std::string(size) + '\0' + ' ');
    file += header + member.content + std::string((512 - member.content.size() % 512) % 512, '\0');
  }
  return file + (hasEnd ? std::string(1024, '\0') : "");
}

} // namespace ortc::engine::test
