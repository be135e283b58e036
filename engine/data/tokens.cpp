// Files of tokens: samples are windows of a text, and labels the tokens behind each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows do not overlap, but for the label of the last token, which is the first one of the next window: so both
// arrays are the file itself, one of them an element later, and nothing is copied. A rest that fills no window is left
// out.
#include "engine/data/tokens.h"

#include <algorithm>
#include <charconv>

#include "support/MappedFile.h"
#include "support/Plural.h"

namespace ortc::engine {
namespace {

constexpr int64_t kRun = 256; ///< windows that change places together
constexpr size_t kHeaderBytes = 1024;

/// The headers of llm.c: 256 numbers of 32 bits, of which the first three say something.
constexpr struct {
  int32_t magic, version;
  DataType type;
} kHeaders[] = {{20240520, 1, DataType::UInt16}, {20240801, 7, DataType::UInt32}};

class TokenSource final : public DataSource {
public:
  TokenSource(std::string path, const TokenOptions &options) : DataSource(std::move(path)), options(options) {
    names = {"tokens", "label"};
  }
  Status open();
  Status load(const std::string &name, Array &array) const override;
  int64_t getRun() const override { return kRun; }
  std::string getShapeHint(const Shape &wanted) const override {
    return wanted.size() == 2 ? "give seq=" + std::to_string(wanted[1]) : "";
  }

private:
  Status bad(const std::string &what) const { return Status::failure(path + ": " + what); }

  TokenOptions options;
  DataType type = DataType::None;
  std::shared_ptr<const MappedFile> file;
  size_t offset = 0;
  int64_t windows = 0;
};

} // namespace

Status TokenSource::open() {
  ORTC_TRY(MappedFile::open(path, file));
  size_t bytes = file->getBytes();
  type = options.type == DataType::None ? DataType::UInt16 : options.type;
  int32_t magic = bytes >= kHeaderBytes ? loadLittle<int32_t>(file->getData()) : 0;
  for (const auto &header : kHeaders) {
    if (magic != header.magic)
      continue;
    int32_t version = loadLittle<int32_t>(file->getData() + 4),
            count = loadLittle<int32_t>(file->getData() + 8);
    if (version != header.version)
      return bad("has llm.c's header " + std::to_string(magic) + " of version " + std::to_string(version) +
                 " at byte 4, but version " + std::to_string(header.version) + " is read");
    if (options.type != DataType::None && options.type != header.type)
      return bad("has llm.c's header " + std::to_string(magic) + ", whose tokens are " +
                 getTypeName(header.type) + ", but dtype=" + getTypeName(options.type) +
                 " is given; leave it out");
    type = header.type;
    offset = kHeaderBytes;
    size_t wanted = size_t(uint32_t(count)) * getElementBytes(type);
    if (count < 0 || bytes - offset != wanted)
      return bad("claims " + std::to_string(count) + " tokens at byte 8, which are " +
                 std::to_string(wanted) + " bytes, but has " + std::to_string(bytes - offset) +
                 " behind its header of 1024");
  }
  size_t element = getElementBytes(type);
  if ((bytes - offset) % element)
    return bad("has " + std::to_string(bytes) + " bytes, which is no multiple of the " +
               std::to_string(element) + " of " + getTypeName(type) + "; dtype says what tokens are");
  auto count = int64_t((bytes - offset) / element);
  windows = (count - 1) / options.length;
  return windows > 0
             ? Status()
             : bad("has " + formatCount(int64_t(count), "token") +
                   ", but a sample of seq=" + std::to_string(options.length) + " takes one more than that");
}

Status TokenSource::load(const std::string &name, Array &array) const {
  if (!has(name))
    return bad("has no array '" + name + "'");
  array = Array();
  array.name = name;
  array.type = type;
  array.shape = {windows, options.length};
  size_t element = getElementBytes(type);
  array.bytes = size_t(windows) * size_t(options.length) * element; // inside the file
  array.data = file->getData() + offset + (name == "label" ? element : 0);
  array.owner = array.file = file;
  array.isStreamed = true;
  return Status();
}

Status TokenOptions::parse(const DataSpec::Options &options, const std::string &where, TokenOptions &result) {
  result = TokenOptions();
  for (const auto &[key, value] : options) {
    if (key == "dtype") {
      static constexpr DataType kTypes[] = {DataType::UInt8, DataType::UInt16, DataType::UInt32,
                                            DataType::Int32, DataType::Int64};
      auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                [&value = value](DataType type) { return value == getTypeName(type); });
      if (found == std::end(kTypes))
        return Status::refusal(where + ": dtype=" + value + " must be uint8, uint16, uint32, int32 or int64");
      result.type = *found;
    } else if (key == "seq") {
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result.length);
      if (error != std::errc() || end != value.data() + value.size() || result.length < 1 ||
          result.length > kMostLength)
        return Status::refusal(where + ": seq=" + value + " must be a whole number from 1 to " +
                               std::to_string(kMostLength));
    } else {
      return Status::refusal(where + ": '" + key + "' is neither dtype nor seq");
    }
  }
  return result.length
             ? Status()
             : Status::refusal(where +
                               ": needs ?seq=N, the tokens of a sample, for which the model was compiled");
}

Status openTokens(const std::string &path, const TokenOptions &options, std::unique_ptr<DataSource> &source) {
  auto opened = std::make_unique<TokenSource>(path, options);
  ORTC_TRY(opened->open());
  source = std::move(opened);
  return Status();
}

} // namespace ortc::engine
