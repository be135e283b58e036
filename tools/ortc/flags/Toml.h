// The part of TOML that recipes are written in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables, keys, strings of one line, numbers, true, false, and lists of these. Numbers stay as they were written, so
// that one parser reads them, whether they come from a file or a command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/Expected.h"

namespace ortc::tool {

enum class TomlKind { String, Integer, Float, Boolean, List };

struct TomlValue {
  TomlKind kind = TomlKind::String;
  std::string text;             ///< without quotes; of a number, as it was written
  std::vector<TomlValue> items; ///< of a list: no lists
  size_t line = 0;              ///< from 1 on
};

struct TomlEntry {
  std::vector<std::string> table; ///< {"train", "binding", "short"}; empty before the first table
  std::string key;
  TomlValue value;
};

/// A table that was begun; entries say which they are in.
struct TomlTable {
  std::vector<std::string> name;
  size_t line = 0;
};

struct TomlFile {
  std::vector<TomlTable> tables;
  std::vector<TomlEntry> entries;
};

/// Refuses with "LINE: reason": other syntax, a key or a table that is given twice.
Expected<TomlFile> parseToml(std::string_view text);

/// A string of TOML.
std::string formatTomlString(std::string_view text);
/// A key, in quotes where it needs them.
std::string formatTomlKey(std::string_view text);
/// Whether `text` is a number of TOML.
bool isTomlInteger(std::string_view text);
bool isTomlFloat(std::string_view text);

} // namespace ortc::tool
