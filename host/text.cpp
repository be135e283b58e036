// Numbers and sizes as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ortc::host {

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
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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

std::string makePrintable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < 32 || letter == 127; }, '?');
  return text;
}

std::string makeLinesPrintable(const std::string &text) {
  std::string printable;
  for (size_t at = 0; at <= text.size();) {
    size_t end = text.find("\n  ", at);
    printable += (at ? "\n" : "") + makePrintable(text.substr(at, end == text.npos ? end : end - at));
    at = end == text.npos ? text.size() + 1 : end + 1;
  }
  return printable;
}

std::string formatCount(int64_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

} // namespace ortc::host
