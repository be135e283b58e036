// tar: the members KEY.COLUMN.npy of a sample follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ustar, pax and GNU's long names and sizes. A reader of our own, decision 0050.
#include "engine/data/tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/MappedFile.h"
#include "support/Npy.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

constexpr size_t kBlock = 512;

struct Member {
  std::string name;
  size_t offset = 0, bytes = 0; ///< of the contents
};

/// Goes through the members of an archive that are files.
class Members {
public:
  explicit Members(const MappedFile &file) : file(file) {}

  /// False at the end, or with a problem.
  bool next(Member &member);
  std::string problem;

private:
  bool fail(const std::string &what) {
    problem = what;
    return false;
  }
  bool readSize(const uint8_t *header, size_t &size);
  bool readPax(size_t offset, size_t size);

  const MappedFile &file;
  size_t at = 0;
  std::string longName;
  size_t longSize = SIZE_MAX;
};

class TarSource final : public DataSource {
public:
  explicit TarSource(std::string path) : DataSource(std::move(path)) {}
  Status open();
  Status describe(const std::string &name, Array &array) const override;
  Status load(const std::string &name, Array &array) const override;

private:
  struct Place {
    size_t offset, bytes;
  };
  Status bad(const std::string &what) const { return Status::failure(path + ": " + what); }
  Status endSample(const std::string &key, size_t begin);
  Status read(const Place &place, const std::string &name, Array &array) const;

  std::shared_ptr<const MappedFile> file;
  size_t samples = 0;
  std::map<std::string, std::vector<Place>> columns;
};

} // namespace

bool Members::readSize(const uint8_t *header, size_t &size) {
  const uint8_t *field = header + 124;
  size = 0;
  if (field[0] & 0x80) { // GNU: the rest is a number, big-endian
    for (size_t i = 0; i < 12; ++i) {
      if (size >> 55)
        return false;
      size = size << 8 | (i ? field[i] : field[i] & 0x7f);
    }
    return true;
  }
  std::string_view text(reinterpret_cast<const char *>(field), 12);
  size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos)
    return true;
  auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), size, 8);
  return error == std::errc() && (end == text.data() + text.size() || *end == 0 || *end == ' ');
}

/// Lines "LENGTH key=value\n".
bool Members::readPax(size_t offset, size_t size) {
  std::string_view text = file.getText().substr(offset, size);
  while (!text.empty() && text[0] != 0) {
    size_t length = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    size_t begin = size_t(end - text.data()) + 1;
    if (error != std::errc() || length > text.size() || begin >= length || text[length - 1] != '\n')
      return false;
    std::string_view pair = text.substr(begin, length - begin - 1);
    if (pair.starts_with("path="))
      longName = pair.substr(5);
    if (pair.starts_with("size=")) {
      std::string_view value = pair.substr(5);
      auto parsed = std::from_chars(value.data(), value.data() + value.size(), longSize);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
        return false;
    }
    text = text.substr(length);
  }
  return true;
}

bool Members::next(Member &member) {
  while (true) {
    const std::string where = " at byte " + std::to_string(at);
    if (!file.contains(at, kBlock))
      return fail("is truncated: it ends at byte " + std::to_string(file.getBytes()) +
                  ", without the block of zeros that ends an archive");
    const uint8_t *header = file.getData() + at;
    if (std::all_of(header, header + kBlock, [](uint8_t byte) { return byte == 0; }))
      return false;
    uint64_t sum = 0, wanted = 0;
    for (size_t i = 0; i < kBlock; ++i)
      sum += i >= 148 && i < 156 ? ' ' : header[i];
    std::string_view text(reinterpret_cast<const char *>(header) + 148, 8);
    size_t blank = std::min(text.find_first_not_of(' '), text.size());
    std::from_chars(text.data() + blank, text.data() + text.size(), wanted, 8);
    if (sum != wanted)
      return fail("has no header of a member" + where + ": its checksum is " + std::to_string(wanted) +
                  ", not " + std::to_string(sum));
    char type = char(header[156]);
    size_t size = 0;
    if (!readSize(header, size))
      return fail("has a member" + where + " whose size is no number");
    bool isFile = type == 0 || type == '0' || type == '7';
    if (isFile && longSize != SIZE_MAX)
      size = longSize;
    if (type >= '1' && type <= '6')
      size = 0; // links and folders
    auto field = [&](size_t offset, size_t bytes) {
      const char *first = reinterpret_cast<const char *>(header) + offset;
      return std::string(first, strnlen(first, bytes));
    };
    bool isPosix = std::memcmp(header + 257, "ustar", 6) == 0;
    std::string prefix = isPosix ? field(345, 155) : "", name = field(0, 100);
    if (!prefix.empty())
      name = prefix + "/" + name;
    if (!longName.empty())
      name = longName;
    if (!file.contains(at + kBlock, size))
      return fail("is truncated: '" + makePrintable(name) + "'" + where + " needs " + std::to_string(size) +
                  " bytes but " + std::to_string(file.getBytes() - at - kBlock) + " follow");
    size_t contents = at + kBlock;
    // The padding of the last member may be cut off with the end, of which the next turn tells.
    at = contents + std::min((size + kBlock - 1) / kBlock * kBlock, file.getBytes() - contents);
    if (type == 'S')
      return fail("has the sparse file '" + makePrintable(name) + "'" + where + ", which is not read");
    if (type == 'L' || type == 'x') {
      if (type == 'L')
        longName = std::string(file.getText().substr(contents, size)).c_str();
      else if (!readPax(contents, size))
        return fail("has a pax header" + where + " that is damaged");
      continue;
    }
    if (type == 'K' || type == 'g')
      continue;
    longName.clear();
    longSize = SIZE_MAX;
    if (!isFile)
      continue;
    member = {name, contents, size};
    return true;
  }
}

/// A sample has all columns of the first one.
Status TarSource::endSample(const std::string &key, size_t begin) {
  for (const auto &[name, places] : columns)
    if (places.size() != samples)
      return bad("sample '" + makePrintable(key) + "' at byte " + std::to_string(begin) + " has " +
                 (places.size() < samples ? "no member" : "two members") + " '" + makePrintable(name) +
                 ".npy'; the members of a sample follow each other, and all samples have the same");
  return Status();
}

Status TarSource::open() {
  ORTC_TRY(MappedFile::open(path, file));
  Members members(*file);
  Member member;
  std::string key;
  size_t begin = 0;
  while (members.next(member)) {
    size_t base = member.name.rfind('/') + 1, dot = member.name.find('.', base);
    if (!member.name.ends_with(".npy") || dot == base) // hidden files are no samples
      continue;
    std::string column =
        member.name.size() - dot > 4 ? member.name.substr(dot + 1, member.name.size() - dot - 5) : "npy";
    std::string itsKey = member.name.substr(0, dot);
    if (samples == 0 || itsKey != key) {
      if (samples)
        ORTC_TRY(endSample(key, begin));
      ++samples;
      key = itsKey;
      begin = member.offset - kBlock;
    }
    auto &places = columns[column];
    if (samples > 1 && places.empty())
      return bad("'" + makePrintable(member.name) + "' at byte " + std::to_string(member.offset - kBlock) +
                 " is of a column that the samples before it have not");
    if (places.empty())
      names.push_back(column);
    places.push_back({member.offset, member.bytes});
  }
  ORTC_TRY(file->checkUnchanged());
  if (!members.problem.empty())
    return bad(members.problem);
  return samples ? endSample(key, begin) : bad("has no member KEY.COLUMN.npy");
}

Status TarSource::read(const Place &place, const std::string &name, Array &array) const {
  std::string where = path + ": '" + name + ".npy' at byte " + std::to_string(place.offset);
  array = Array();
  array.name = name;
  return parseNpy(file->getData() + place.offset, place.bytes, where, file, array);
}

Status TarSource::describe(const std::string &name, Array &array) const {
  auto found = columns.find(name);
  if (found == columns.end())
    return bad("has no array '" + name + "'");
  Status isRead = read(found->second[0], name, array);
  ORTC_TRY(file->checkUnchanged());
  ORTC_TRY(isRead);
  size_t all = 0;
  if (__builtin_mul_overflow(array.bytes, samples, &all))
    return bad("array '" + name + "' has a size that overflows");
  array.shape.insert(array.shape.begin(), int64_t(samples));
  array.bytes = all;
  array.data = nullptr;
  return Status();
}

Status TarSource::load(const std::string &name, Array &array) const {
  ORTC_TRY(describe(name, array));
  const std::vector<Place> &places = columns.at(name);
  size_t each = array.bytes / samples;
  for (const Place &place : places)
    if (place.bytes < each) // before there is memory for what none of them has
      return bad("'" + name + ".npy' at byte " + std::to_string(place.offset) + " has " +
                 std::to_string(place.bytes) + " bytes, but the first sample's values alone take " +
                 std::to_string(each));
  std::shared_ptr<uint8_t[]> values(new uint8_t[std::max<size_t>(array.bytes, 1)]);
  Shape wanted(array.shape.begin() + 1, array.shape.end());
  for (size_t i = 0; i < places.size(); ++i) {
    Array one;
    Status isRead = read(places[i], name, one);
    if (!isRead.isOk() || one.type != array.type || one.shape != wanted)
      ORTC_TRY(file->checkUnchanged());
    ORTC_TRY(isRead);
    if (one.type != array.type || one.shape != wanted)
      return bad("'" + name + ".npy' at byte " + std::to_string(places[i].offset) + " has shape " +
                 formatShape(one.shape) + " of " + getTypeName(one.type) +
                 " but that of the first sample has " + formatShape(wanted) + " of " +
                 getTypeName(array.type));
    std::memcpy(values.get() + i * each, one.data, each);
  }
  ORTC_TRY(file->checkUnchanged());
  forgetPages(file->getData(), file->getBytes());
  array.data = values.get();
  array.owner = values;
  return Status();
}

Status openTar(const std::string &path, std::unique_ptr<DataSource> &source) {
  auto tar = std::make_unique<TarSource>(path);
  ORTC_TRY(tar->open());
  source = std::move(tar);
  return Status();
}

} // namespace ortc::engine
