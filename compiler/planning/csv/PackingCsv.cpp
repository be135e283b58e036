// Packing problems as CSV in MiniMalloc's format, both ways.
//
// Reading trusts nothing: every field is checked where it is used, and a message names the line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/csv/PackingCsv.h"

#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/csv/CsvRecords.h"

#include <algorithm>
#include <map>

namespace ortc::planning {

using namespace csv;

namespace {

/// Times of a lifetime when only the bytes [low, high) are needed; none when both are 0.
struct Gap {
  uint32_t begin = 0, end = 0;
  uint64_t low = 0, high = 0;
};

/// Reads the lines below a header.
class BufferReader {
public:
  /// Finds the columns; `status` says what is wrong with them.
  explicit BufferReader(const Record &header) : width(header.fields.size()) {
    static const std::map<std::string, std::string> kOtherNames = {
        {"begin", "lower"}, {"start", "lower"}, {"buffer", "id"}, {"buffer_id", "id"}, {"end", "upper"}};
    for (size_t i = 0; i < width; ++i) {
      const std::string &name = header.fields[i];
      auto other = kOtherNames.find(name);
      if (!columns.insert({other == kOtherNames.end() ? name : other->second, i}).second) {
        status = syntax(header.line, "column '" + name.substr(0, 40) + "' is there twice");
        return;
      }
      inclusive = inclusive || name == "end";
    }
    for (const char *name : {"id", "lower", "upper", "size"})
      if (!columns.count(name)) {
        status = syntax(header.line, std::string("the header has no column '") + name + "'");
        return;
      }
  }

  Status read(const Record &record, PackingFile &file) const {
    if (record.fields.size() != width)
      return syntax(record.line, "there are " + std::to_string(record.fields.size()) +
                                     " fields but the header has " + std::to_string(width));
    Fields fields(record);
    Item item;
    uint32_t begin = fields.id(columns.at("lower"), "lower");
    uint32_t end = endTime(fields, record.fields[columns.at("upper")], "upper");
    uint64_t size = fields.number(columns.at("size"), "size", kMaxTotalBytes);
    if (begin >= end)
      fields.fail("the buffer ends at " + std::to_string(end) + ", not after it begins at " +
                  std::to_string(begin));
    if (size == 0)
      fields.fail("the buffer has no bytes");
    if (const std::string *text = find(record, "alignment"))
      item.alignment = fields.parse(*text, "alignment", kMaxAlignment);
    if (item.alignment == 0 || (item.alignment & (item.alignment - 1)) != 0)
      fields.fail("alignment " + std::to_string(item.alignment) + " is not a power of two");
    if (const std::string *text = find(record, "hint"); text && *text != "-1")
      item.hint = fields.parse(*text, "hint", kMaxTotalBytes);
    if (const std::string *text = find(record, "offset"))
      item.fixed = fields.parse(*text, "offset", kMaxTotalBytes);
    if (fields.isOk() && item.fixed != kAnywhere && item.fixed % item.alignment != 0)
      fields.fail("offset " + std::to_string(item.fixed) + " breaks the alignment of " +
                  std::to_string(item.alignment));
    const std::string *pool = find(record, "pool");
    file.pools.push_back(pool ? uint32_t(fields.parse(*pool, "pool", UINT32_MAX - 1)) : 0);
    std::vector<Gap> gaps = readGaps(record, fields, begin, end, size);
    if (!fields.isOk())
      return fields.status;
    item.pieces = cutGaps(begin, end, size, gaps);
    if (std::none_of(item.pieces.begin(), item.pieces.end(), [&](const Piece &p) { return p.size == size; }))
      return syntax(record.line,
                    "the gaps leave no time at which the buffer has its " + std::to_string(size) + " bytes");
    file.problem.items.push_back(std::move(item));
    file.problem.sections = std::max(file.problem.sections, end);
    file.ids.push_back(record.fields[columns.at("id")]);
    file.lifetimes.push_back({begin, end});
    return {};
  }

  Status status;

private:
  /// The field of a column that is there and not empty.
  const std::string *find(const Record &record, const char *name) const {
    auto column = columns.find(name);
    return column == columns.end() || record.fields[column->second].empty() ? nullptr
                                                                            : &record.fields[column->second];
  }

  uint32_t endTime(Fields &fields, std::string_view digits, const char *what) const {
    return uint32_t(fields.parse(digits, what, UINT32_MAX - 1 - inclusive)) + inclusive;
  }

  std::vector<Gap> readGaps(const Record &record, Fields &fields, uint32_t begin, uint32_t end,
                            uint64_t size) const {
    std::vector<Gap> gaps;
    const std::string *text = find(record, "gaps");
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty() && fields.isOk()) {
      size_t stop = std::min(rest.find(' '), rest.size());
      if (stop > 0)
        gaps.push_back(readGap(rest.substr(0, stop), fields, begin, end, size));
      rest.remove_prefix(std::min(rest.size(), stop + 1));
    }
    std::sort(gaps.begin(), gaps.end(), [](const Gap &x, const Gap &y) { return x.begin < y.begin; });
    for (size_t i = 1; i < gaps.size(); ++i)
      if (gaps[i].begin < gaps[i - 1].end)
        fields.fail("two gaps overlap at time " + std::to_string(gaps[i].begin));
    return gaps;
  }

  Gap readGap(std::string_view text, Fields &fields, uint32_t begin, uint32_t end, uint64_t size) const {
    std::string shown = "gap '" + std::string(text.substr(0, 40)) + "'";
    size_t at = text.find('@'), dash = text.find('-'), colon = text.find(':', std::min(at, text.size()));
    Gap gap;
    if (dash == text.npos || dash > at || (at != text.npos && colon == text.npos)) {
      fields.fail(shown + " is not of the form FROM-TO or FROM-TO@LOW:HIGH");
      return gap;
    }
    gap.begin = uint32_t(fields.parse(text.substr(0, dash), "gap", UINT32_MAX - 1));
    gap.end = endTime(fields, text.substr(dash + 1, std::min(at, text.size()) - dash - 1), "gap");
    if (gap.begin >= gap.end || gap.begin < begin || gap.end > end)
      fields.fail(shown + " is empty or not within the lifetime of the buffer");
    if (at == text.npos)
      return gap;
    gap.low = fields.parse(text.substr(at + 1, colon - at - 1), "window", kMaxTotalBytes);
    gap.high = fields.parse(text.substr(colon + 1), "window", kMaxTotalBytes);
    if (gap.low >= gap.high || gap.high > size)
      fields.fail(shown + " has a window that is empty or not within the " + std::to_string(size) +
                  " bytes of the buffer");
    return gap;
  }

  static std::vector<Piece> cutGaps(uint32_t begin, uint32_t end, uint64_t size,
                                    const std::vector<Gap> &gaps) {
    std::vector<Piece> pieces;
    auto add = [&](Piece piece) {
      if (piece.begin == piece.end || piece.size == 0)
        return;
      Piece *before = pieces.empty() ? nullptr : &pieces.back();
      if (before && before->end == piece.begin && before->size == piece.size && before->low == piece.low)
        before->end = piece.end;
      else
        pieces.push_back(piece);
    };
    for (const Gap &gap : gaps) {
      add({begin, gap.begin, size, 0});
      add({gap.begin, gap.end, gap.high - gap.low, gap.low});
      begin = gap.end;
    }
    add({begin, end, size, 0});
    return pieces;
  }

  size_t width;
  bool inclusive = false; ///< ends are the last time, not the one after
  std::map<std::string, size_t> columns;
};

/// What an item that lives in [begin, end) does not need of its `size` bytes.
std::string writeGaps(const Item &item, uint32_t begin, uint32_t end, uint64_t size) {
  std::string text;
  auto add = [&](uint32_t from, uint32_t to) {
    text += (text.empty() ? "" : " ") + std::to_string(from) + "-" + std::to_string(to);
  };
  uint32_t reach = begin;
  for (const Piece &piece : item.pieces) {
    if (piece.begin > reach)
      add(reach, piece.begin);
    if (piece.size != size) {
      add(piece.begin, piece.end);
      text += "@" + std::to_string(piece.low) + ":" + std::to_string(piece.low + piece.size);
    }
    reach = piece.end;
  }
  if (end > reach)
    add(reach, end);
  return text;
}

} // namespace

Expected<PackingFile> readPacking(std::string_view text) {
  RecordReader reader(text);
  Record record;
  if (!reader.next(record))
    return reader.status.isOk() ? syntax(1, "the file is empty") : reader.status;
  BufferReader buffers(record);
  if (!buffers.status.isOk())
    return buffers.status;
  PackingFile file;
  uint64_t total = 0;
  while (reader.next(record)) {
    ORTC_TRY(buffers.read(record, file));
    uint64_t top = 0;
    for (const Piece &piece : file.problem.items.back().pieces)
      top = std::max(top, piece.low + piece.size);
    if (!addBytes(total, top))
      return syntax(record.line, "the sum of all sizes is above " + std::to_string(kMaxTotalBytes));
  }
  if (!reader.status.isOk())
    return reader.status;
  if (std::all_of(file.pools.begin(), file.pools.end(), [](uint32_t pool) { return pool == 0; }))
    file.pools.clear();
  std::vector<uint32_t> pools = file.pools;
  pools.resize(file.ids.size(), 0);
  for (const Pool &pool : splitPools(file.problem, pools)) // alone: fixed offsets of two pools may be equal
    if (Status status = checkPacking(pool.problem); !status.isOk())
      return Status::refusal((file.pools.empty() ? "" : "pool " + std::to_string(pool.number) + ": ") +
                             status.getMessage());
  return file;
}

std::string writePacking(const PackingFile &file, const std::vector<uint64_t> &offsets) {
  const std::vector<Item> &items = file.problem.items;
  std::vector<uint64_t> sizes;
  std::vector<std::string> gaps;
  std::vector<std::pair<uint32_t, uint32_t>> lifetimes = file.lifetimes;
  bool hasAlignment = false, hasHints = false, hasGaps = false, hasOffsets = !offsets.empty();
  for (const Item &item : items) {
    size_t i = sizes.size();
    if (file.lifetimes.empty())
      lifetimes.push_back({item.pieces.front().begin, item.pieces.back().end});
    sizes.push_back(0);
    for (const Piece &piece : item.pieces)
      sizes.back() = std::max(sizes.back(), piece.low + piece.size);
    gaps.push_back(writeGaps(item, lifetimes[i].first, lifetimes[i].second, sizes[i]));
    hasAlignment |= item.alignment != 1;
    hasHints |= item.hint != kAnywhere;
    hasGaps |= !gaps.back().empty();
    hasOffsets |= item.fixed != kAnywhere;
  }
  std::string out = "id,lower,upper,size";
  for (auto [has, name] : {std::pair(hasAlignment, ",alignment"),
                           {hasHints, ",hint"},
                           {hasGaps, ",gaps"},
                           {!file.pools.empty(), ",pool"},
                           {hasOffsets, ",offset"}})
    out += has ? name : "";
  out += '\n';
  auto place = [](uint64_t offset) { return offset == kAnywhere ? std::string() : std::to_string(offset); };
  for (size_t i = 0; i < items.size(); ++i) {
    const Item &item = items[i];
    out += i < file.ids.size() ? quote(file.ids[i]) : std::to_string(i);
    for (uint64_t value : {uint64_t(lifetimes[i].first), uint64_t(lifetimes[i].second), sizes[i]})
      out += "," + std::to_string(value);
    if (hasAlignment)
      out += "," + std::to_string(item.alignment);
    if (hasHints)
      out += "," + (item.hint == kAnywhere ? "-1" : std::to_string(item.hint));
    if (hasGaps)
      out += "," + gaps[i];
    if (!file.pools.empty())
      out += "," + std::to_string(file.pools[i]);
    if (hasOffsets)
      out += "," + place(offsets.empty() ? item.fixed : offsets[i]);
    out += '\n';
  }
  return out;
}

} // namespace ortc::planning
