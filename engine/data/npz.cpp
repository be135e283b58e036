// npz: a zip archive of npy files, stored or deflated, with zip64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The central directory is read and checked when the file is opened; members are read on demand. Every offset
// and size is checked against the file before it is used, and no memory is allocated for a size the data
// cannot have.
#include <algorithm>
#include <map>
#include <zlib.h>

#include "engine/data/data_source.h"
#include "engine/data/inflate.h"
#include "support/MappedFile.h"
#include "support/Npy.h"

namespace ortc::engine {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;

constexpr uint64_t kPiece = 1 << 20;          ///< bytes of an array that are resident while it is checked
constexpr uint64_t kUninterrupted = 64 << 20; ///< bytes that take no time worth an interruption

struct Member {
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t compressed = 0, uncompressed = 0, header = 0; ///< `header`: offset of the local header
};

/// Where the bytes of a member are.
struct Place {
  Member member;
  const uint8_t *data = nullptr;
  std::string where; ///< begins messages
};

class NpzSource final : public DataSource {
public:
  NpzSource(std::string path, const StopFlag *stop) : DataSource(std::move(path)), stop(stop) {}
  Status open();
  Status describe(const std::string &name, Array &array) const override;
  Status load(const std::string &name, Array &array) const override;

private:
  Status bad(const std::string &what) const { return Status::failure(path + ": " + what); }
  Status findDirectory(uint64_t &offset, uint64_t &bytes, uint64_t &count) const;
  Status readDirectory(uint64_t offset, uint64_t bytes, uint64_t count);

  Status find(const std::string &name, Place &place) const;

  const StopFlag *stop;
  std::shared_ptr<const MappedFile> file;
  std::map<std::string, Member> members;
};

} // namespace

Status NpzSource::open() {
  ORTC_TRY(MappedFile::open(path, file));
  uint64_t offset = 0, bytes = 0, count = 0;
  ORTC_TRY(findDirectory(offset, bytes, count));
  return readDirectory(offset, bytes, count);
}

/// The end record is the last thing in the file but for a comment of at most 65535 bytes.
Status NpzSource::findDirectory(uint64_t &offset, uint64_t &bytes, uint64_t &count) const {
  const uint8_t *data = file->getData();
  size_t size = file->getBytes();
  if (size == 0)
    return bad("is empty; an npz file was expected");
  size_t end = size; // of the search: past the last place the record may begin
  bool found = false;
  for (size_t back = kEndBytes; back <= size && back <= kEndBytes + 65535 && !found; ++back) {
    end = size - back;
    found = loadLittle<uint32_t>(data + end) == kEndMagic &&
            loadLittle<uint16_t>(data + end + 20) == back - kEndBytes;
  }
  if (!found)
    return bad("is no npz file or is truncated: it has no zip end record");
  if (loadLittle<uint16_t>(data + end + 4) != 0 || loadLittle<uint16_t>(data + end + 6) != 0)
    if (loadLittle<uint16_t>(data + end + 4) != 0xffff)
      return bad("is one part of an archive in several files");
  count = loadLittle<uint16_t>(data + end + 10);
  bytes = loadLittle<uint32_t>(data + end + 12);
  offset = loadLittle<uint32_t>(data + end + 16);
  if (count == 0xffff || bytes == 0xffffffff || offset == 0xffffffff) {
    if (end < kLocator64Bytes || loadLittle<uint32_t>(data + end - kLocator64Bytes) != kLocator64Magic)
      return bad("has no zip64 locator although its end record asks for one");
    uint64_t end64 = loadLittle<uint64_t>(data + end - kLocator64Bytes + 8);
    if (!file->contains(end64, kEnd64Bytes) || loadLittle<uint32_t>(data + end64) != kEnd64Magic)
      return bad("has no zip64 end record at byte " + std::to_string(end64));
    count = loadLittle<uint64_t>(data + end64 + 32);
    bytes = loadLittle<uint64_t>(data + end64 + 40);
    offset = loadLittle<uint64_t>(data + end64 + 48);
  }
  if (!file->contains(offset, bytes))
    return bad("has its directory at byte " + std::to_string(offset) + " with " + std::to_string(bytes) +
               " bytes, outside the file of " + std::to_string(size));
  if (count > bytes / kCentralBytes)
    return bad("claims " + std::to_string(count) + " members but its directory of " + std::to_string(bytes) +
               " bytes has room for " + std::to_string(bytes / kCentralBytes));
  return Status();
}

/// Replaces the sizes of `member` that are all ones by those of the zip64 extra field; false when it is too
/// short.
static bool readZip64(const uint8_t *extra, size_t bytes, Member &member) {
  bool wantsUncompressed = member.uncompressed == 0xffffffff,
       wantsCompressed = member.compressed == 0xffffffff, wantsHeader = member.header == 0xffffffff;
  if (!wantsUncompressed && !wantsCompressed && !wantsHeader)
    return true;
  while (bytes >= 4) {
    uint16_t id = loadLittle<uint16_t>(extra);
    size_t length = loadLittle<uint16_t>(extra + 2);
    if (length > bytes - 4)
      return false;
    if (id == 1) {
      const uint8_t *at = extra + 4;
      for (auto [wants, value] :
           {std::pair(wantsUncompressed, &member.uncompressed),
            std::pair(wantsCompressed, &member.compressed), std::pair(wantsHeader, &member.header)}) {
        if (!wants)
          continue;
        if (length < 8)
          return false;
        *value = loadLittle<uint64_t>(at);
        at += 8;
        length -= 8;
      }
      return true;
    }
    extra += 4 + length;
    bytes -= 4 + length;
  }
  return false;
}

Status NpzSource::readDirectory(uint64_t offset, uint64_t bytes, uint64_t count) {
  const uint8_t *at = file->getData() + offset;
  uint64_t left = bytes;
  for (uint64_t i = 0; i < count; ++i) {
    if (left < kCentralBytes || loadLittle<uint32_t>(at) != kCentralMagic)
      return bad("has a damaged directory at member " + std::to_string(i));
    Member member;
    member.flags = loadLittle<uint16_t>(at + 8);
    member.method = loadLittle<uint16_t>(at + 10);
    member.crc = loadLittle<uint32_t>(at + 16);
    member.compressed = loadLittle<uint32_t>(at + 20);
    member.uncompressed = loadLittle<uint32_t>(at + 24);
    member.header = loadLittle<uint32_t>(at + 42);
    size_t name = loadLittle<uint16_t>(at + 28), extra = loadLittle<uint16_t>(at + 30),
           comment = loadLittle<uint16_t>(at + 32);
    if (name + extra + comment > left - kCentralBytes)
      return bad("has a directory that ends in the middle of member " + std::to_string(i));
    std::string key(reinterpret_cast<const char *>(at) + kCentralBytes, name);
    if (!readZip64(at + kCentralBytes + name, extra, member))
      return bad("member '" + key + "' has no complete zip64 sizes");
    if (!file->contains(member.header, kLocalBytes) || !file->contains(member.header, member.compressed))
      return bad("member '" + key + "' lies at byte " + std::to_string(member.header) + " with " +
                 std::to_string(member.compressed) + " bytes, outside the file of " +
                 std::to_string(file->getBytes()));
    at += kCentralBytes + name + extra + comment;
    left -= kCentralBytes + name + extra + comment;
    if (!key.ends_with(".npy"))
      continue; // numpy itself shows other members as raw bytes; nothing here needs them
    key.resize(key.size() - 4);
    if (!members.emplace(key, member).second)
      return bad("has the array '" + key + "' twice");
    names.push_back(key);
  }
  return Status();
}

/// Finds a member, and checks what can be checked without inflating it.
Status NpzSource::find(const std::string &name, Place &place) const {
  auto found = members.find(name);
  if (found == members.end())
    return bad("has no array '" + name + "'");
  const Member &member = found->second;
  place.member = member;
  place.where = path + ": array '" + name + "'";
  auto wrong = [&](const std::string &what) { return Status::failure(place.where + ": " + what); };
  if (member.flags & 1)
    return wrong("is encrypted");
  if (member.method != 0 && member.method != 8)
    return wrong("is compressed by zip method " + std::to_string(member.method) +
                 " but only stored (0) and deflated (8) are read; write it with numpy.savez_compressed");
  const uint8_t *local = file->getData() + member.header;
  if (loadLittle<uint32_t>(local) != kLocalMagic)
    return wrong("has no local header at byte " + std::to_string(member.header));
  uint64_t begin =
      member.header + kLocalBytes + loadLittle<uint16_t>(local + 26) + loadLittle<uint16_t>(local + 28);
  if (!file->contains(begin, member.compressed))
    return wrong("needs " + std::to_string(member.compressed) + " bytes from byte " + std::to_string(begin) +
                 " but the file has " + std::to_string(file->getBytes()));
  place.data = file->getData() + begin;
  if (member.method == 0 && member.compressed != member.uncompressed)
    return wrong("is stored but has sizes " + std::to_string(member.compressed) + " and " +
                 std::to_string(member.uncompressed));
  if (member.uncompressed > PTRDIFF_MAX)
    return wrong("claims " + std::to_string(member.uncompressed) + " bytes, but no more than " +
                 std::to_string(PTRDIFF_MAX) + " can be read here");
  if (member.method == 8 && !canExpandTo(member.compressed, member.uncompressed))
    return wrong("claims " + std::to_string(member.uncompressed) + " bytes, more than its " +
                 std::to_string(member.compressed) + " compressed bytes can hold");
  return Status();
}

Status NpzSource::describe(const std::string &name, Array &array) const {
  Place place;
  ORTC_TRY(find(name, place));
  const Member &member = place.member;
  NpyHeader header;
  std::vector<uint8_t> inflated;
  size_t present = member.method == 0 ? member.uncompressed : 0, needed = 0;
  do {
    if (needed) {
      inflated.resize(needed);
      std::string problem =
          inflatePrefix(place.data, member.compressed, Compression::Raw, inflated.data(), needed);
      if (!problem.empty())
        return Status::failure(place.where + ": " + problem);
      present = needed;
    }
    ORTC_TRY(parseNpyHeader(member.method == 0 ? place.data : inflated.data(), present, member.uncompressed,
                            place.where, header, needed));
  } while (needed);
  array = describeNpy(name, header);
  return Status();
}

Status NpzSource::load(const std::string &name, Array &array) const {
  Place place;
  ORTC_TRY(find(name, place));
  const Member &member = place.member;
  auto wrong = [&](const std::string &what) { return Status::failure(place.where + ": " + what); };
  const uint8_t *data = place.data;
  std::shared_ptr<const void> owner = file;
  if (member.method == 8) {
    std::shared_ptr<uint8_t[]> inflated;
    std::string problem = allocateInflated(member.uncompressed, inflated);
    if (problem.empty())
      problem = inflateExactly(data, member.compressed, Compression::Raw, inflated.get(), member.uncompressed,
                               stop);
    if (!problem.empty())
      return wrong(problem);
    data = inflated.get();
    owner = inflated;
  }
  uLong crc = crc32_z(0, nullptr, 0);
  for (uint64_t at = 0; at < member.uncompressed; at += kPiece) {
    if (stop && *stop && at >= kUninterrupted)
      return wrong("was not read to its end: interrupted");
    size_t bytes = size_t(std::min(kPiece, member.uncompressed - at));
    crc = crc32_z(crc, data + at, bytes);
    if (member.method == 0)
      forgetPages(data + at, bytes);
  }
#if !defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION) // no mutation would get past it
  if (crc != member.crc)
    return wrong("is damaged: its CRC-32 does not match");
#endif
  if (member.method == 0)
    forgetPages(data, member.uncompressed); // some came back around those that were read
  array = Array();
  array.name = name;
  ORTC_TRY(parseNpy(data, member.uncompressed, place.where, std::move(owner), array));
  if (array.owner == file)
    array.file = file;
  return Status();
}

Status openNpz(const std::string &path, std::unique_ptr<DataSource> &source, const StopFlag *stop) {
  auto npz = std::make_unique<NpzSource>(path, stop);
  ORTC_TRY(npz->open());
  source = std::move(npz);
  return Status();
}

} // namespace ortc::engine
