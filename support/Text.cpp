// Numbers and sizes as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Text.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "support/Printable.h"

namespace ortc {

std::string formatNumber(double value) {
  if (std::isnan(value))
    return "nan";
  char text[64];
  std::to_chars_result result{};
  if (float narrow = static_cast<float>(value); double(narrow) == value)
    result = std::to_chars(text, text + sizeof(text), narrow);
  else
    result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

std::string formatExact(double value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string formatJsonNumber(double value) { return std::isfinite(value) ? formatNumber(value) : "null"; }

std::string formatJsonString(const std::string &text) {
  return escapeJson(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string escapeJson(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  while (!json.empty()) {
    const Character character = readCharacter(json);
    char code[8];
    std::snprintf(code, sizeof(code), "\\u%04x", unsigned(character.code & 0xFFFF));
    const bool isPlain = character.code < 0x7F || isPrintable(character.code);
    escaped += isPlain ? json.substr(0, character.bytes) : std::string_view(code);
    json.remove_prefix(character.bytes);
  }
  return escaped;
}

std::string escapeHtml(std::string_view text) {
  std::string escaped;
  for (char letter : makePrintable(text))
    if (letter == '&')
      escaped += "&amp;";
    else if (letter == '<')
      escaped += "&lt;";
    else if (letter == '>')
      escaped += "&gt;";
    else if (letter == '"')
      escaped += "&quot;";
    else if (letter == '\'')
      escaped += "&#39;";
    else
      escaped += letter;
  return escaped;
}

std::string formatShort(double value, int digits) {
  if (std::isnan(value)) // printf has a sign for it
    return "nan";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string formatBytes(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = double(bytes);
  const char *unit = "B";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  char text[64];
  std::snprintf(text, sizeof(text), value < 10 ? "%.2f %s" : "%.1f %s", value, unit);
  return text;
}

ByteUnit findByteUnit(std::string_view text) {
  static constexpr ByteUnit kUnits[] = {{"KiB", 1ull << 10},
                                        {"MiB", 1ull << 20},
                                        {"GiB", 1ull << 30},
                                        {"TiB", 1ull << 40},
                                        {"PiB", 1ull << 50},
                                        {"kB", 1000},
                                        {"KB", 1000},
                                        {"MB", 1000'000},
                                        {"GB", 1000'000'000},
                                        {"TB", 1000'000'000'000},
                                        {"PB", 1000'000'000'000'000},
                                        {"B", 1}};
  for (const ByteUnit &unit : kUnits)
    if (text.ends_with(unit.name))
      return unit;
  return {};
}

std::string formatBytesIn(uint64_t bytes, std::string_view unit) {
  const uint64_t size = findByteUnit(unit).bytes;
  if (size == 1)
    return std::to_string(bytes) + std::string(unit);
  constexpr uint64_t kParts = 1000;
  const uint64_t whole = bytes / size, rest = bytes % size;
  uint64_t parts = uint64_t(std::ceil(double(rest) / double(size) * kParts));
  std::string text = std::to_string(whole + parts / kParts);
  if (parts %= kParts; parts) {
    std::string digits = std::to_string(kParts + parts).substr(1);
    text += "." + digits.substr(0, digits.find_last_not_of('0') + 1);
  }
  return text + std::string(unit);
}

std::string joinWords(const std::vector<std::string> &words, const std::string &last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " " + last + " " : ", ") + words[i];
  return text;
}

} // namespace ortc
