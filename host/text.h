// Numbers and sizes as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace ortc::host {

/// The shortest text that reads back as the same double, or as the same float when the value is one. Values
/// that are not finite give "nan", "inf", "-inf".
std::string formatNumber(double value);
/// The shortest text that reads back as the same double.
std::string formatExact(double value);
/// formatNumber() for JSON, which has no such values: they become null.
std::string formatJsonNumber(double value);
/// A JSON string with its quotes.
std::string formatJsonString(const std::string &text);
/// At most `digits` significant digits, for people.
std::string formatShort(double value, int digits = 4);
/// "512 B", "1.5 KiB", "3.2 MiB".
std::string formatBytes(uint64_t bytes);
/// `text` without what would act on a terminal: names are the model's.
std::string makePrintable(std::string text);
/// The same of several lines, of which all but the first begin with two spaces.
std::string makeLinesPrintable(const std::string &text);
/// "1 step", "2 steps".
std::string formatCount(int64_t count, const std::string &noun);

} // namespace ortc::host
