// CSV: lines of numbers under a header with the names of their columns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RFC 4180 with commas, and lines that end with or without a carriage return. Lines are counted when the file is
// opened; only an array's columns are read, when it is asked for, so that others may be text. The file is compared
// with what it was after each of both: others may write to it meanwhile.
#include "engine/data/csv.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/EditDistance.h"
#include "support/MappedFile.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

constexpr size_t kMostColumns = 1 << 20, kMostHeader = 64 << 20; ///< bytes of the line that names them

/// What a message shows of a name or a field.
std::string shorten(std::string_view text) {
  constexpr size_t kMost = 40;
  return makePrintable(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

/// Takes lines apart.
class Lines {
public:
  explicit Lines(std::string_view text) : text(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text) {}

  /// The first `most` fields of the next line that is not empty, and how many it has; false at the end. A field that
  /// is wrong is left in `problem`.
  bool next(std::vector<std::string_view> &fields, size_t most, size_t &count, std::string &problem) {
    while (at < text.size()) {
      ++number;
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (line.ends_with('\r'))
        line.remove_suffix(1);
      if (line.empty())
        continue;
      bytes = line.size();
      split(line, fields, most, count, problem);
      return true;
    }
    return false;
  }
  size_t getNumber() const { return number; }
  size_t getBytes() const { return bytes; } ///< of that line

private:
  static void split(std::string_view line, std::vector<std::string_view> &fields, size_t most, size_t &count,
                    std::string &problem) {
    fields.clear();
    count = 0;
    auto add = [&](std::string_view field) {
      if (count++ < most)
        fields.push_back(field);
    };
    for (size_t begin = 0; begin <= line.size() && problem.empty();) {
      size_t end = std::min(line.find(',', begin), line.size());
      if (begin < line.size() && line[begin] == '"') {
        size_t close = line.find('"', begin + 1);
        while (close != std::string_view::npos && line.substr(close + 1).starts_with('"'))
          close = line.find('"', close + 2);
        if (close == std::string_view::npos || (close + 1 < line.size() && line[close + 1] != ','))
          problem = "has a quote that does not end in front of a comma or the line's end";
        else
          end = close + 1;
        add(line.substr(begin + 1, end - begin - 2));
      } else {
        add(line.substr(begin, end - begin));
      }
      begin = end + 1;
    }
  }

  std::string_view text;
  size_t at = 0, number = 0, bytes = 0;
};

/// A whole number, or one that is not.
struct Number {
  bool isWhole = false;
  int64_t whole = 0;
  double value = 0;
};

bool parseNumber(std::string_view text, Number &number) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  if (text.starts_with('+') && !text.starts_with("+-"))
    text.remove_prefix(1);
  const char *begin = text.data(), *end = begin + text.size();
  auto whole = std::from_chars(begin, end, number.whole);
  number.isWhole = whole.ec == std::errc() && whole.ptr == end;
  if (number.isWhole) {
    number.value = static_cast<double>(number.whole);
    return true;
  }
  auto real = std::from_chars(begin, end, number.value);
  return !text.empty() && real.ec == std::errc() && real.ptr == end;
}

/// The numbers of an array: whole ones until one is not.
struct Numbers {
  std::vector<int64_t> whole;
  std::vector<double> real;
  bool isReal = false;

  void add(const Number &number) {
    if (!isReal && !number.isWhole) {
      real.assign(whole.begin(), whole.end());
      whole = {};
      isReal = true;
    }
    if (isReal)
      real.push_back(number.value);
    else
      whole.push_back(number.whole);
  }
};

class CsvSource final : public DataSource {
public:
  CsvSource(std::string path, const StopFlag *stop) : DataSource(std::move(path)), stop(stop) {}
  Status open(const DataSpec::Options &options);
  Status load(const std::string &name, Array &array) const override;
  bool isText() const override { return true; }

private:
  Status bad(const std::string &what) const { return Status::failure(path + ": " + what); }
  Status group();
  Status choose(const DataSpec::Options &options);
  int64_t findColumn(std::string_view name) const;
  Status findColumns(std::string_view item, const std::string &array, std::vector<size_t> &found) const;
  void addArray(const std::string &name, std::vector<size_t> columns);

  const StopFlag *stop;
  std::shared_ptr<const MappedFile> file;
  std::vector<std::string> header;
  int64_t rows = 0;
  struct Columns {
    std::vector<size_t> numbers;
    bool isRow = false; ///< the array has an axis for them
  };
  std::map<std::string, Columns> arrays;
  mutable std::map<std::string, Array> loaded; ///< what describe() has read is asked for soon
};

} // namespace

Status CsvSource::open(const DataSpec::Options &options) {
  ORTC_TRY(MappedFile::open(path, file));
  Lines lines(file->getText());
  std::vector<std::string_view> fields;
  size_t count = 0;
  std::string problem;
  if (!lines.next(fields, kMostColumns, count, problem))
    return bad("is empty; its first line must name the columns");
  if (problem.empty() && count > kMostColumns)
    problem =
        "has " + std::to_string(count) + " columns; at most " + std::to_string(kMostColumns) + " are read";
  else if (problem.empty() && lines.getBytes() > kMostHeader)
    problem = "has " + formatBytes(lines.getBytes()) + ", but names of columns may have at most " +
              formatBytes(kMostHeader) + " in all";
  else
    header.assign(fields.begin(), fields.end());
  std::set<std::string_view> seen;
  for (size_t i = 0; i < header.size() && problem.empty(); ++i)
    if (header[i].empty())
      problem = "has no name for column " + std::to_string(i + 1);
    else if (!seen.insert(header[i]).second)
      problem = "names the column '" + shorten(header[i]) + "' twice";
  if (!problem.empty())
    return bad("line " + std::to_string(lines.getNumber()) + " " + problem);
  while (lines.next(fields, header.size(), count, problem)) {
    if (problem.empty() && count != header.size())
      problem = "has " + formatCount(int64_t(count), "field") + " but the header has " +
                std::to_string(header.size());
    if (!problem.empty())
      return bad("line " + std::to_string(lines.getNumber()) + " " + problem);
    if (stop && *stop && rows % 65536 == 65535)
      return bad("was not read to its end: interrupted");
    ++rows;
  }
  ORTC_TRY(file->checkUnchanged());
  return options.empty() ? group() : choose(options);
}

void CsvSource::addArray(const std::string &name, std::vector<size_t> columns) {
  names.push_back(name);
  arrays[name].numbers = std::move(columns);
}

/// "x[3]" is column 3 of x.
Status CsvSource::group() {
  std::map<std::string, std::map<size_t, size_t>> rowsOf; // name, index, column
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string &column = header[i];
    size_t bracket = column.find('['), index = 0;
    bool isElement = bracket != std::string::npos && bracket > 0 && column.ends_with(']');
    if (isElement) {
      const char *first = column.data() + bracket + 1, *last = column.data() + column.size() - 1;
      auto [end, error] = std::from_chars(first, last, index);
      isElement = error == std::errc() && end == last;
    }
    std::string name = isElement ? column.substr(0, bracket) : column;
    bool isNew = !arrays.contains(name);
    if (isNew)
      addArray(name, {});
    Columns &array = arrays[name];
    if (!isNew && array.isRow != isElement)
      return bad("line 1 has columns '" + shorten(name) + "' and '" + shorten(name) +
                 "[...]', which would be one array");
    array.isRow = isElement;
    if (!isElement)
      array.numbers = {i};
    else if (!rowsOf[name].emplace(index, i).second)
      return bad("line 1 has the column " + std::to_string(index) + " of '" + shorten(name) + "' twice");
  }
  for (const auto &[name, columns] : rowsOf)
    for (const auto &[index, column] : columns) {
      std::vector<size_t> &numbers = arrays[name].numbers;
      if (index != numbers.size())
        return bad("line 1 has the column '" + shorten(header[column]) + "' but no '" + shorten(name) + "[" +
                   std::to_string(numbers.size()) + "]'");
      numbers.push_back(column);
    }
  return Status();
}

/// One item of a list of columns: those of this name; or, where there are none, those whose names fit "p*", and without
/// them again those behind "-".
Status CsvSource::choose(const DataSpec::Options &options) {
  std::vector<std::vector<std::string>> lists;
  std::vector<int> owner(header.size(), -1); // the array that has a column by its name
  for (const auto &[name, list] : options) {
    std::vector<std::string> &items = lists.emplace_back();
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = std::min(list.find(',', begin), list.size());
      items.push_back(list.substr(begin, end - begin));
      if (int64_t column = findColumn(items.back()); column >= 0)
        owner[size_t(column)] = int(lists.size()) - 1;
      begin = end + 1;
    }
  }
  std::vector<int> taken(header.size(), -1); // the array that has a column by a pattern
  for (size_t i = 0; i < lists.size(); ++i) {
    const std::string &name = options[i].first;
    std::vector<size_t> columns;
    std::set<size_t> isThere;
    bool hasPattern = false;
    for (const std::string &item : lists[i]) {
      std::vector<size_t> found;
      ORTC_TRY(findColumns(item, name, found));
      const bool isOut = findColumn(item) < 0 && item.starts_with('-');
      const bool isPattern = findColumn(item) < 0 && item.find('*') != std::string::npos;
      hasPattern |= isPattern;
      for (size_t column : found) {
        if (isOut) {
          std::erase(columns, column);
          isThere.erase(column);
          continue;
        }
        if (isPattern && owner[column] >= 0 && owner[column] != int(i))
          continue; // another array asks for it by its name
        if (isThere.insert(column).second)
          columns.push_back(column);
      }
    }
    for (size_t column : columns) {
      if (hasPattern && taken[column] >= 0)
        return Status::refusal(path + ": '" + options[size_t(taken[column])].first + "' and '" + name +
                               "' both ask for the column '" + shorten(header[column]) + "' by a pattern");
      taken[column] = hasPattern ? int(i) : taken[column];
    }
    if (columns.empty())
      return bad("has no column left for '" + name + "'");
    addArray(name, columns);
    arrays[name].isRow = hasPattern || columns.size() > 1;
  }
  return Status();
}

/// -1: there is none.
int64_t CsvSource::findColumn(std::string_view name) const {
  auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? -1 : found - header.begin();
}

/// Whether the whole name fits a pattern in which "*" stands for any text. In linear time for each part between them.
static bool fits(std::string_view name, std::string_view pattern) {
  const size_t first = pattern.find('*'), last = pattern.rfind('*');
  if (first == std::string_view::npos)
    return name == pattern;
  if (name.size() < pattern.size() - (last - first + 1) || !name.starts_with(pattern.substr(0, first)) ||
      !name.ends_with(pattern.substr(last + 1)))
    return false;
  name = name.substr(first, name.size() - first - (pattern.size() - last - 1));
  for (size_t begin = first + 1; begin <= last;) {
    const size_t end = std::min(pattern.find('*', begin), last);
    const std::string_view part = pattern.substr(begin, end - begin);
    const size_t at = name.find(part);
    if (at == std::string_view::npos)
      return false;
    name.remove_prefix(at + part.size());
    begin = end + 1;
  }
  return true;
}

Status CsvSource::findColumns(std::string_view item, const std::string &array,
                              std::vector<size_t> &found) const {
  if (int64_t column = findColumn(item); column >= 0) {
    found = {size_t(column)};
    return Status();
  }
  const std::string_view pattern = item.starts_with('-') ? item.substr(1) : item;
  for (size_t i = 0; i < header.size(); ++i)
    if (fits(header[i], pattern))
      found.push_back(i);
  if (!found.empty())
    return Status();
  std::vector<std::string> known;
  for (size_t i = 0; i < header.size() && i < 256; ++i)
    known.push_back(shorten(header[i]));
  std::string shown;
  for (size_t i = 0; i < known.size() && i < 8; ++i)
    shown += (i ? ", '" : "'") + known[i] + "'";
  return bad("has no column '" + shorten(pattern) + "' for '" + array + "'; it has " + shown +
             (header.size() > 8 ? ", ..." : "") + suggestWord(shorten(pattern), known));
}

/// Of a row behind the header; 0 where the file has changed.
static size_t findLine(const MappedFile &file, int64_t row) {
  size_t number = 0;
  Status status = file.read([&] {
    Lines lines(file.getText());
    std::vector<std::string_view> fields;
    std::string problem;
    size_t count = 0;
    for (int64_t i = -1; i <= row && lines.next(fields, 0, count, problem); ++i)
      number = lines.getNumber();
  });
  return status.isOk() ? number : 0;
}

Status CsvSource::load(const std::string &name, Array &array) const {
  if (auto found = loaded.find(name); found != loaded.end()) {
    array = found->second;
    return Status();
  }
  auto known = arrays.find(name);
  if (known == arrays.end())
    return bad("has no array '" + name + "'");
  const Columns &columns = known->second;
  auto numbers = std::make_shared<Numbers>();
  Lines lines(file->getText());
  std::vector<std::string_view> fields;
  std::string problem;
  size_t count = 0;
  lines.next(fields, header.size(), count, problem); // the header
  int64_t row = 0;
  for (; lines.next(fields, header.size(), count, problem); ++row) {
    if (count != header.size() || row == rows) // what follows would have another shape
      break;
    for (size_t column : columns.numbers) {
      Number number;
      if (!parseNumber(fields[column], number)) {
        ORTC_TRY(file->checkUnchanged());
        return bad("line " + std::to_string(lines.getNumber()) + ", column '" + shorten(header[column]) +
                   "': '" + shorten(fields[column]) + "' is no number");
      }
      numbers->add(number);
    }
    if (stop && *stop && row % 65536 == 65535)
      return bad("was not read to its end: interrupted");
  }
  ORTC_TRY(file->checkUnchanged());
  if (row != rows || count != header.size()) // the clock of the file's time may be behind
    return file->refuseChange();
  array = Array();
  array.name = name;
  array.isText = true;
  array.type = numbers->isReal ? DataType::Float64 : DataType::Int64;
  array.shape = {rows};
  if (columns.isRow)
    array.shape.push_back(int64_t(columns.numbers.size()));
  array.bytes = (numbers->real.size() + numbers->whole.size()) * 8;
  array.data = numbers->isReal ? reinterpret_cast<const uint8_t *>(numbers->real.data())
                               : reinterpret_cast<const uint8_t *>(numbers->whole.data());
  array.owner = std::move(numbers);
  array.findLine = [file = file](int64_t row) { return findLine(*file, row); };
  loaded[name] = array;
  forgetPages(file->getData(), file->getBytes());
  return Status();
}

Status openCsv(const std::string &path, const DataSpec::Options &options, std::unique_ptr<DataSource> &source,
               const StopFlag *stop) {
  auto csv = std::make_unique<CsvSource>(path, stop);
  ORTC_TRY(csv->open(options));
  source = std::move(csv);
  return Status();
}

} // namespace ortc::engine
