// Numbers and sizes as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/Plural.h"

namespace ortc {

/// The shortest text that reads back as the same double, or as the same float when the value is one. Values
/// that are not finite give "nan", "inf", "-inf".
std::string formatNumber(double value);
/// The shortest text that reads back as the same double.
std::string formatExact(double value);
/// formatNumber() for JSON, which has no such values: they become null.
std::string formatJsonNumber(double value);
/// A JSON string with its quotes. Characters that do not show are escaped, as by escapeJson().
std::string formatJsonString(const std::string &text);
/// JSON whose strings show as they are on a terminal: characters that makePrintable() hides are escapes, which say the
/// same.
std::string escapeJson(std::string_view json);
/// Printable text for HTML and XML, in elements and in quoted attributes.
std::string escapeHtml(std::string_view text);
/// At most `digits` significant digits, for people.
std::string formatShort(double value, int digits = 4);
/// "512 B", "1.5 KiB", "3.2 MiB".
std::string formatBytes(uint64_t bytes);
/// A unit of sizes on a command line; "" stands for bytes.
struct ByteUnit {
  std::string_view name;
  uint64_t bytes = 1;
};
/// The one that `text` ends with, as in "300KiB" or "8GB".
ByteUnit findByteUnit(std::string_view text);
/// At least as much, in the unit that somebody has given another size in: "8.25GB"; digits alone
/// of bytes.
std::string formatBytesIn(uint64_t bytes, std::string_view unit);

/// "a, b and c".
std::string joinWords(const std::vector<std::string> &words, const std::string &last = "and");

} // namespace ortc
