// Records of CSV files: cutting text into fields, and fields into numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/csv/CsvRecords.h"

#include <algorithm>
#include <charconv>

namespace ortc::planning::csv {

Status syntax(size_t line, const std::string &what) {
  return Status::refusal("line " + std::to_string(line) + ": " + what);
}

bool RecordReader::next(Record &record) {
  while (at < text.size() && (text[at] == '\n' || text[at] == '\r'))
    advance();
  if (at >= text.size())
    return false;
  record.line = line;
  record.fields.assign(1, {});
  while (at < text.size() && text[at] != '\n') {
    if (text[at] == ',') {
      record.fields.emplace_back();
      advance();
    } else if (text[at] == '"' && record.fields.back().empty()) {
      if (!quoted(record))
        return false;
    } else if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] == '\n')) {
      advance();
    } else if (text[at] == '"' || text[at] == '\0') {
      return fail(line,
                  text[at] == '"' ? "a quote inside a field that does not start with one" : "a zero byte");
    } else {
      record.fields.back() += text[at];
      advance();
    }
  }
  return true;
}

bool RecordReader::quoted(Record &record) {
  size_t opened = line;
  for (advance(); at < text.size(); advance()) {
    if (text[at] == '\0')
      return fail(line, "a zero byte");
    if (text[at] != '"') {
      record.fields.back() += text[at];
      continue;
    }
    advance();
    if (at >= text.size() || text[at] == ',' || text[at] == '\n' || text[at] == '\r')
      return true;
    if (text[at] != '"')
      return fail(line, "a quoted field goes on after its closing quote");
    record.fields.back() += '"';
  }
  return fail(opened, "a quoted field has no closing quote");
}

std::vector<uint32_t> Fields::ids(size_t field, const char *what) {
  std::vector<uint32_t> list;
  if (field >= record.fields.size())
    return list;
  std::string_view rest = record.fields[field];
  while (!rest.empty() && isOk()) {
    size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0)
      list.push_back(uint32_t(parse(rest.substr(0, end), what, UINT32_MAX - 1)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return list;
}

uint64_t Fields::parse(std::string_view digits, const char *what, uint64_t most) {
  uint64_t value = 0;
  std::string shown(digits.substr(0, 40));
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range || (error == std::errc() && value > most))
    fail(std::string(what) + " " + shown + " is above " + std::to_string(most));
  else if (error != std::errc() || end != digits.data() + digits.size())
    fail(std::string(what) + " '" + shown + "' is not a number");
  return value;
}

std::string quote(const std::string &field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos)
    return field;
  std::string result(1, '"');
  for (char c : field)
    result.append(c == '"' ? 2 : 1, c);
  result += '"';
  return result;
}

} // namespace ortc::planning::csv
