// The part of TOML that recipes are written in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Toml.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>

namespace ortc::tool {
namespace {

bool isDigit(char letter) { return letter >= '0' && letter <= '9'; }

bool isBare(char letter) {
  return isDigit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         letter == '_' || letter == '-';
}

/// Digits from `begin` on; where they end.
size_t skipDigits(std::string_view text, size_t begin) {
  while (begin < text.size() && isDigit(text[begin]))
    ++begin;
  return begin;
}

/// The sign and the digits of a whole number; 0 where there is none. A zero stands in front of nothing.
size_t skipInteger(std::string_view text) {
  const size_t begin = text.starts_with("-") || text.starts_with("+") ? 1 : 0, end = skipDigits(text, begin);
  return end == begin || (text[begin] == '0' && end > begin + 1) ? 0 : end;
}

/// Reads a file from its first letter to its last.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  Expected<TomlFile> read() {
    if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
      return Status::refusal(std::to_string(1 + std::count(text.begin(), text.begin() + zero, '\n')) +
                             ": a zero byte has no meaning in a recipe");
    while (skipLines(), at < text.size())
      ORTC_TRY(peek() == '[' ? readTable() : readEntry());
    return std::move(file);
  }

private:
  char peek() const { return at < text.size() ? text[at] : '\0'; }
  bool take(char letter) {
    const bool isNext = at < text.size() && text[at] == letter;
    at += isNext;
    return isNext;
  }
  void skipBlanks() {
    while (peek() == ' ' || peek() == '\t')
      ++at;
  }
  void skipComment() {
    if (peek() == '#')
      at = std::min(text.find('\n', at), text.size());
  }
  /// Blanks, comments and ends of lines.
  void skipLines() {
    for (;;) {
      skipBlanks();
      skipComment();
      if (peek() == '\r' && text.substr(at, 2) == "\r\n")
        ++at;
      if (!take('\n'))
        return;
      ++line;
    }
  }

  Status refuse(const std::string &reason) const {
    return Status::refusal(std::to_string(line) + ": " + reason);
  }

  /// What is left of the line, for messages.
  std::string getRest() const {
    std::string_view rest = text.substr(at, text.find('\n', at) - at);
    if (rest.ends_with('\r'))
      rest.remove_suffix(1);
    return rest.empty() ? "nothing" : "'" + std::string(rest) + "'";
  }

  Status endLine(const char *after) {
    skipBlanks();
    skipComment();
    if (at < text.size() && peek() != '\n' && text.substr(at, 2) != "\r\n")
      return refuse(getRest() + " follows " + after + " on the same line");
    return Status();
  }

  Expected<std::string> readKey() {
    if (peek() == '"' || peek() == '\'')
      return readString();
    const size_t begin = at;
    while (isBare(peek()))
      ++at;
    if (at == begin)
      return refuse("a key is expected, but there is " + getRest());
    return std::string(text.substr(begin, at - begin));
  }

  Status readTable() {
    ++at;
    if (peek() == '[')
      return refuse("recipes have no lists of tables ([[...]])");
    TomlTable table{.name = {}, .line = line};
    do {
      skipBlanks();
      std::string part;
      ORTC_TRY(readKey().moveTo(part));
      table.name.push_back(std::move(part));
      skipBlanks();
    } while (take('.'));
    if (!take(']'))
      return refuse("']' is expected at the end of a table's name, but there is " + getRest());
    ORTC_TRY(endLine("a table's name"));
    if (auto [first, isNew] = tables.try_emplace(table.name, table.line); !isNew)
      return refuse("this table is given twice, first in line " + std::to_string(first->second) +
                    "; join them");
    keys.clear();
    file.tables.push_back(std::move(table));
    return Status();
  }

  Status readEntry() {
    TomlEntry entry;
    if (!file.tables.empty())
      entry.table = file.tables.back().name;
    ORTC_TRY(readKey().moveTo(entry.key));
    skipBlanks();
    if (!take('='))
      return refuse("'=' is expected after the key '" + entry.key + "', but there is " + getRest());
    skipBlanks();
    ORTC_TRY(readValue().moveTo(entry.value));
    ORTC_TRY(endLine("a value"));
    if (auto [first, isNew] = keys.try_emplace(entry.key, entry.value.line); !isNew)
      return Status::refusal(std::to_string(entry.value.line) + ": '" + entry.key +
                             "' is given twice, first in line " + std::to_string(first->second) +
                             "; leave one of them out");
    file.entries.push_back(std::move(entry));
    return Status();
  }

  Expected<TomlValue> readValue() {
    TomlValue value{.kind = TomlKind::String, .text = {}, .items = {}, .line = line};
    if (peek() == '"' || peek() == '\'') {
      ORTC_TRY(readString().moveTo(value.text));
      return value;
    }
    if (peek() == '[')
      return readList();
    const size_t begin = at;
    while (isBare(peek()) || peek() == '.' || peek() == '+' || peek() == ':')
      ++at;
    value.text = text.substr(begin, at - begin);
    if (value.text == "true" || value.text == "false")
      value.kind = TomlKind::Boolean;
    else if (isTomlInteger(value.text))
      value.kind = TomlKind::Integer;
    else if (isTomlFloat(value.text))
      value.kind = TomlKind::Float;
    else
      return refuse((value.text.empty() ? getRest() : "'" + value.text + "'") +
                    " is no string in quotes, number, true, false or list of them");
    return value;
  }

  Expected<TomlValue> readList() {
    TomlValue list{.kind = TomlKind::List, .text = {}, .items = {}, .line = line};
    ++at;
    for (skipLines(); !take(']'); skipLines()) {
      if (peek() == '[')
        return refuse("a list in a list has no meaning here");
      ORTC_TRY(readValue().moveTo(list.items.emplace_back()));
      skipLines();
      if (!take(',') && peek() != ']')
        return refuse("',' or ']' is expected in a list, but there is " + getRest());
    }
    return list;
  }

  Expected<std::string> readString() {
    const char mark = text[at++];
    if (text.substr(at, 2) == std::string(2, mark))
      return refuse("a string of several lines has no meaning here");
    std::string value;
    while (!take(mark)) {
      const char letter = peek();
      if (at >= text.size() || letter == '\n' || letter == '\r')
        return refuse("a string has no end: " + std::string(1, mark) + " is missing");
      ++at;
      if (letter == '\\' && mark == '"')
        ORTC_TRY(readEscape(value));
      else
        value += letter;
    }
    return value;
  }

  Status readEscape(std::string &value) {
    static const std::map<char, char> kLetters = {{'"', '"'},  {'\\', '\\'}, {'n', '\n'}, {'t', '\t'},
                                                  {'r', '\r'}, {'b', '\b'},  {'f', '\f'}};
    const char letter = peek();
    if (auto found = kLetters.find(letter); found != kLetters.end()) {
      ++at;
      value += found->second;
      return Status();
    }
    const size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const std::string_view hex = text.substr(std::min(at + 1, text.size()), digits);
    if (digits == 0 || hex.size() < digits || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos)
      return refuse(
          "'\\" + std::string(1, letter) +
          "' is no escape of TOML; a backslash is \\\\, or stands in a string between single quotes");
    at += 1 + digits;
    return appendUtf8(std::stoul(std::string(hex), nullptr, 16), value);
  }

  Status appendUtf8(unsigned long code, std::string &value) {
    if (code == 0)
      return refuse("a zero byte has no meaning in a recipe");
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return refuse("an escape is no character of Unicode");
    if (code < 0x80) {
      value += char(code);
      return Status();
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    value += char(((0xFF00 >> (more + 1)) & 0xFF) | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i)
      value += char(0x80 | (code >> (6 * i) & 0x3F));
    return Status();
  }

  std::string_view text;
  size_t at = 0, line = 1;
  std::map<std::vector<std::string>, size_t> tables; ///< lines
  std::map<std::string, size_t> keys;                ///< the same, of the table that is read
  TomlFile file;
};

} // namespace

Expected<TomlFile> parseToml(std::string_view text) { return Reader(text).read(); }

bool isTomlInteger(std::string_view text) { return !text.empty() && skipInteger(text) == text.size(); }

bool isTomlFloat(std::string_view text) {
  size_t at = skipInteger(text);
  if (at == 0)
    return false;
  if (at < text.size() && text[at] == '.') {
    const size_t end = skipDigits(text, at + 1);
    if (end == at + 1)
      return false;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at += 1 + (at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+'));
    const size_t end = skipDigits(text, at);
    if (end == at)
      return false;
    at = end;
  }
  return at == text.size();
}

std::string formatTomlString(std::string_view text) {
  const bool hasControls =
      std::any_of(text.begin(), text.end(), [](unsigned char each) { return each < 32 || each == 127; });
  if (!hasControls && text.find('\'') == text.npos && text.find_first_of("\\\"") != text.npos)
    return "'" + std::string(text) + "'"; // a regular expression, as it is
  std::string quoted = "\"";
  for (char letter : text) {
    char escape[8];
    const auto code = static_cast<unsigned char>(letter);
    if (code < 32 || code == 127) {
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      quoted += escape;
    } else {
      quoted += (letter == '"' || letter == '\\' ? "\\" : "") + std::string(1, letter);
    }
  }
  return quoted + "\"";
}

std::string formatTomlKey(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), isBare) ? std::string(text)
                                                                        : formatTomlString(text);
}

} // namespace ortc::tool
