// Records of CSV files: cutting text into fields, and fields into numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ortc::planning::csv {

/// "line N: what" as an error.
Status syntax(size_t line, const std::string &what);

struct Record {
  size_t line = 0;
  std::vector<std::string> fields;
};

/// Cuts text into records, one at a time; empty lines are passed over, and the mark that some editors put in
/// front of UTF-8.
class RecordReader {
public:
  explicit RecordReader(std::string_view text) : text(text), at(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  /// False at the end of the text or on an error, which `status` then holds.
  bool next(Record &record);

  Status status;

private:
  bool quoted(Record &record);

  bool fail(size_t where, const char *what) {
    status = syntax(where, what);
    return false;
  }

  void advance() { line += text[at++] == '\n'; }

  std::string_view text;
  size_t at, line = 1;
};

/// Typed access to the fields of a record; the first error stays.
class Fields {
public:
  explicit Fields(const Record &record) : record(record) {}

  void count(size_t wanted) {
    if (record.fields.size() != wanted)
      fail("'" + record.fields[0] + "' has " + std::to_string(record.fields.size() - 1) +
           " fields but needs " + std::to_string(wanted - 1));
  }

  uint64_t number(size_t field, const char *what, uint64_t most = UINT64_MAX) {
    return field < record.fields.size() ? parse(record.fields[field], what, most) : 0;
  }

  uint32_t id(size_t field, const char *what) { return uint32_t(number(field, what, UINT32_MAX - 1)); }

  bool flag(size_t field, const char *what) { return number(field, what, 1) != 0; }

  /// An id that must be the next one.
  void sequence(size_t field, const char *what, size_t expected) {
    uint64_t found = number(field, what);
    if (isOk() && found != expected)
      fail(std::string(what) + " is " + std::to_string(found) + " but the next one is " +
           std::to_string(expected));
  }

  std::vector<uint32_t> ids(size_t field, const char *what);

  std::string text(size_t field) const {
    return field < record.fields.size() ? record.fields[field] : std::string();
  }
  bool empty(size_t field) const { return field >= record.fields.size() || record.fields[field].empty(); }

  /// A number in a part of a field.
  uint64_t parse(std::string_view digits, const char *what, uint64_t most);

  void fail(const std::string &what) {
    if (isOk())
      status = syntax(record.line, what);
  }
  bool isOk() const { return status.isOk(); }

  Status status;

private:
  const Record &record;
};

/// The field as it is written: in quotes where it needs them.
std::string quote(const std::string &field);

/// Joins the fields of one record.
template <typename... Values> void line(std::string &out, const Values &...values) {
  auto text = [](const auto &value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string>)
      return std::string(value);
    else
      return std::to_string(value);
  };
  ((out += text(values), out += ','), ...);
  out.back() = '\n';
}

} // namespace ortc::planning::csv
