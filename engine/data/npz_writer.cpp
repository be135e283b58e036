// Writes npz files: a zip archive of stored npy members.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <zlib.h>

#include "engine/data/writers.h"
#include "support/AtomicFile.h"
#include "support/Npy.h"

namespace ortc::engine {
namespace {

constexpr uint64_t kLimit32 = 0xffffffff;

template <typename T> void put(std::string &to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    to += char(uint64_t(value) >> (8 * i) & 255);
}

/// What local header and directory say about a member.
struct Member {
  std::string name;
  uint32_t crc = 0;
  uint64_t bytes = 0, offset = 0;
};

/// The fields both headers share, from "version needed" to the length of the name. A date of 1 January 1980.
void putCommon(std::string &to, const Member &member, bool isLarge) {
  put<uint16_t>(to, isLarge ? 45 : 20);
  put<uint16_t>(to, 0x800); // names are UTF-8
  put<uint16_t>(to, 0);     // stored
  put<uint16_t>(to, 0);
  put<uint16_t>(to, 0x21);
  put<uint32_t>(to, member.crc);
  put<uint32_t>(to, uint32_t(isLarge ? kLimit32 : member.bytes));
  put<uint32_t>(to, uint32_t(isLarge ? kLimit32 : member.bytes));
  put<uint16_t>(to, uint16_t(member.name.size()));
}

std::string formatLocal(const Member &member) {
  bool isLarge = member.bytes >= kLimit32;
  std::string text;
  put<uint32_t>(text, 0x04034b50);
  putCommon(text, member, isLarge);
  put<uint16_t>(text, isLarge ? 20 : 0);
  text += member.name;
  if (isLarge) {
    put<uint16_t>(text, 1);
    put<uint16_t>(text, 16);
    put<uint64_t>(text, member.bytes);
    put<uint64_t>(text, member.bytes);
  }
  return text;
}

std::string formatCentral(const Member &member) {
  bool isLarge = member.bytes >= kLimit32, isFar = member.offset >= kLimit32;
  std::string extra;
  if (isLarge) {
    put<uint64_t>(extra, member.bytes);
    put<uint64_t>(extra, member.bytes);
  }
  if (isFar)
    put<uint64_t>(extra, member.offset);
  std::string text;
  put<uint32_t>(text, 0x02014b50);
  put<uint16_t>(text, isLarge || isFar ? 45 : 20);
  putCommon(text, member, isLarge);
  put<uint16_t>(text, uint16_t(extra.empty() ? 0 : extra.size() + 4));
  put<uint16_t>(text, 0); // comment
  put<uint16_t>(text, 0); // disk
  put<uint16_t>(text, 0); // attributes
  put<uint32_t>(text, 0);
  put<uint32_t>(text, uint32_t(isFar ? kLimit32 : member.offset));
  text += member.name;
  if (!extra.empty()) {
    put<uint16_t>(text, 1);
    put<uint16_t>(text, uint16_t(extra.size()));
    text += extra;
  }
  return text;
}

std::string formatEnd(uint64_t count, uint64_t offset, uint64_t bytes) {
  std::string text;
  if (count >= 0xffff || offset >= kLimit32 || bytes >= kLimit32) {
    put<uint32_t>(text, 0x06064b50);
    put<uint64_t>(text, 44);
    put<uint16_t>(text, 45);
    put<uint16_t>(text, 45);
    put<uint32_t>(text, 0);
    put<uint32_t>(text, 0);
    put<uint64_t>(text, count);
    put<uint64_t>(text, count);
    put<uint64_t>(text, bytes);
    put<uint64_t>(text, offset);
    put<uint32_t>(text, 0x07064b50);
    put<uint32_t>(text, 0);
    put<uint64_t>(text, offset + bytes);
    put<uint32_t>(text, 1);
  }
  put<uint32_t>(text, 0x06054b50);
  put<uint32_t>(text, 0);
  put<uint16_t>(text, uint16_t(std::min<uint64_t>(count, 0xffff)));
  put<uint16_t>(text, uint16_t(std::min<uint64_t>(count, 0xffff)));
  put<uint32_t>(text, uint32_t(std::min(bytes, kLimit32)));
  put<uint32_t>(text, uint32_t(std::min(offset, kLimit32)));
  put<uint16_t>(text, 0);
  return text;
}

} // namespace

static std::vector<uint8_t> widenBfloat(const std::vector<uint8_t> &from) {
  std::vector<uint8_t> to(from.size() * 2);
  for (size_t i = 0; i < from.size(); i += 2) { // the high half of a float
    to[2 * i + 2] = from[i];
    to[2 * i + 3] = from[i + 1];
  }
  return to;
}

Status writeNpz(const std::string &path, const std::vector<OutputArray> &arrays) {
  AtomicFile file(path);
  ORTC_TRY(file.open());
  uint64_t offset = 0;
  std::string directory;
  for (const OutputArray &array : arrays) {
    bool isBfloat = array.type == DataType::BFloat16;
    std::vector<uint8_t> wide = isBfloat ? widenBfloat(array.data) : std::vector<uint8_t>();
    const std::vector<uint8_t> &data = isBfloat ? wide : array.data;
    std::string header = formatNpyHeader(isBfloat ? DataType::Float32 : array.type, array.shape);
    Member member{array.name + ".npy", 0, header.size() + data.size(), offset};
    if (member.name.size() > 0xffff)
      return Status::failure(path + ": the name of an array has " + std::to_string(member.name.size()) +
                             " bytes but zip allows 65535");
    member.crc = uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(header.data()), header.size()));
    if (!data.empty())
      member.crc = uint32_t(crc32_z(member.crc, data.data(), data.size()));
    std::string local = formatLocal(member);
    ORTC_TRY(file.write(local));
    ORTC_TRY(file.write(header));
    ORTC_TRY(file.write(data.data(), data.size()));
    offset += local.size() + member.bytes;
    directory += formatCentral(member);
  }
  ORTC_TRY(file.write(directory));
  ORTC_TRY(file.write(formatEnd(arrays.size(), offset, directory.size())));
  return file.commit();
}

} // namespace ortc::engine
