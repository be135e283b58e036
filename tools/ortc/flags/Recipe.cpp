// Recipes: the flags of commands in a TOML file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Recipe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "support/EditDistance.h"
#include "support/ReadAll.h"
#include "tools/ortc/flags/Toml.h"

namespace ortc::tool {
namespace {

constexpr const char *kBinding = "binding", *kShape = "shape";
constexpr size_t kMostBytes = 1 << 20;

using Names = std::set<std::string, std::less<>>;

/// A value in words: "list", "'ten', a string".
std::string describe(const TomlValue &value) {
  switch (value.kind) {
  case TomlKind::String:
    return "'" + value.text + "', a string";
  case TomlKind::List:
    return "a list";
  case TomlKind::Integer:
  case TomlKind::Float:
  case TomlKind::Boolean:
    return value.text;
  }
  return "";
}

/// What a flag takes, in words, with an example.
std::string describeType(const FlagRow &row) {
  const std::string name = row.name;
  switch (row.type) {
  case FlagType::Switch:
    return "true or false: " + name + " = true";
  case FlagType::Whole:
    return "a whole number: " + name + " = 1";
  case FlagType::Number:
    return "a number: " + name + " = 0.5";
  case FlagType::Bytes:
    return "a whole number or a string: " + name + " = \"512MiB\"";
  case FlagType::Count:
    return "a whole number or a string: " + name + " = 8";
  case FlagType::Scale:
    return "a number or a string: " + name + " = \"dynamic\"";
  default:
    return "a string" + std::string(row.repeats ? " or a list of them" : "") + ": " + name + " = \"" +
           row.value + "\"";
  }
}

bool takes(const FlagRow &row, TomlKind kind) {
  switch (row.type) {
  case FlagType::Switch:
    return kind == TomlKind::Boolean;
  case FlagType::Whole:
    return kind == TomlKind::Integer;
  case FlagType::Number:
    return kind == TomlKind::Integer || kind == TomlKind::Float;
  case FlagType::Bytes:
  case FlagType::Count:
    return kind == TomlKind::Integer || kind == TomlKind::String;
  case FlagType::Scale:
    return kind == TomlKind::Integer || kind == TomlKind::Float || kind == TomlKind::String;
  default:
    return kind == TomlKind::String;
  }
}

/// Whether the shapes of several bindings belong to the command.
bool hasBindings(const CommandRow &command) {
  const FlagRow *row = command.find(kBinding);
  return row && row->repeats;
}

/// The names, of which shapes and bindings are all or none: they belong together.
Names joinBindings(const CommandRow &command, Names names) {
  if (hasBindings(command) && (names.count(kShape) || names.count(kBinding)))
    names.insert({kShape, kBinding});
  return names;
}

void dropGiven(std::vector<GivenFlag> &flags, const Names &given) {
  std::erase_if(flags, [&](const GivenFlag &each) { return given.count(each.row->name) > 0; });
}

/// The row of a flag of `owner` that `command` shares, or null.
const FlagRow *findShared(const CommandRow &command, const CommandRow &owner, std::string_view flag) {
  for (const FlagGroup &group : command.groups)
    for (const FlagRow &row : group.rows)
      if (flag == row.name && std::string_view(group.command) == owner.name)
        return &row;
  return nullptr;
}

Status checkTable(const std::vector<std::string> &table) {
  const CommandRow *command = findCommand(table.front());
  std::vector<std::string> names;
  for (const CommandRow &each : listCommands())
    if (each.find("config"))
      names.emplace_back(each.name);
  if (!command || !command->find("config"))
    return Status::refusal("'" + table.front() + "' is no command that takes a recipe" +
                           suggestWord(table.front(), names));
  if (table.size() == 3 && table[2].empty())
    return Status::refusal("a binding has an empty name; write [" + table.front() + ".binding.NAME]");
  if (table.size() == 1 || (table.size() == 3 && table[1] == kBinding && hasBindings(*command)))
    return Status();
  return Status::refusal(
      "[" + table.front() + "." + table[1] + (table.size() > 2 ? "..." : "") + "] has no meaning; " +
      (hasBindings(*command) ? "there are [" + table.front() + "] and [" + table.front() + ".binding.NAME]"
                             : "there is [" + table.front() + "]"));
}

Expected<const FlagRow *> findFlag(const CommandRow &command, const TomlEntry &entry) {
  const FlagRow *row = command.find(entry.key);
  if (entry.table.size() > 1 && entry.key != kShape)
    return Status::refusal("'" + entry.key + "' is no key of a binding; it has a shape");
  if (row && (entry.key == "config" || entry.key == "write-config"))
    return Status::refusal("'" + entry.key + "' is for the command line, and has no meaning in a recipe");
  if (row && entry.key == kBinding && row->repeats)
    return Status::refusal("a binding is a table of its own: [" + entry.table.front() +
                           ".binding.NAME] with a shape");
  if (row)
    return row;
  std::vector<std::string> names;
  for (const FlagGroup &group : command.groups)
    for (const FlagRow &each : group.rows)
      names.emplace_back(each.name);
  const std::string meant = suggestWord(entry.key, names);
  return Status::refusal(
      "'" + entry.key + "' is no flag of ortc " + command.name +
      (meant.empty() ? "; ortc " + std::string(command.name) + " --help lists them" : meant));
}

/// Values and their lines; a switch that is on has "".
Expected<std::vector<std::pair<std::string, size_t>>> listValues(const FlagRow &row, const TomlValue &value) {
  if (value.kind == TomlKind::List && !row.repeats)
    return Status::refusal(std::string(row.name) + " is a list, but the flag is given once; it takes " +
                           describeType(row));
  std::vector<std::pair<std::string, size_t>> values;
  for (const TomlValue &each : value.kind == TomlKind::List ? value.items : std::vector{value}) {
    if (!takes(row, each.kind))
      return Status::refusal(std::string(row.name) + " is " + describe(each) + ", but it takes " +
                             describeType(row));
    if (row.type != FlagType::Switch && each.text.empty())
      return Status::refusal(std::string(row.name) + " is empty, but it takes " + describeType(row));
    if (row.type != FlagType::Switch)
      values.emplace_back(each.text.starts_with("+") && each.kind != TomlKind::String ? each.text.substr(1)
                                                                                      : each.text,
                          each.line);
    else if (each.text == "true")
      values.emplace_back("", each.line);
  }
  return values;
}

Expected<std::string> readFile(const std::string &file) {
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code))
    return Status::refusal("--config: " + file + " is no regular file");
  auto refuse = [&](uintmax_t bytes) {
    return Status::refusal("--config: " + file + " has " + std::to_string(bytes) +
                           " bytes, but a recipe has at most " + std::to_string(kMostBytes));
  };
  if (const uintmax_t bytes = std::filesystem::file_size(file, code); !code && bytes > kMostBytes)
    return refuse(bytes);
  std::ifstream stream(file, std::ios::binary);
  std::optional<std::string> text = stream ? readAll(stream) : std::nullopt;
  if (!text)
    return Status::failure("--config: " + file + ": cannot be opened: " + std::strerror(errno ? errno : EIO));
  if (text->size() > kMostBytes)
    return refuse(text->size());
  return std::move(*text);
}

/// Visits the flags of a command line, with the value of each: null where none follows, or "--flag=" has none.
void visitFlags(const CommandRow &command, const std::vector<std::string> &arguments,
                const std::function<void(const FlagRow &, const std::string *value)> &visit) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const FlagRow *row = command.findGiven(arguments[i]);
    if (!row)
      continue;
    std::string value;
    bool isThere = false;
    if (const size_t sign = arguments[i].find('=');
        arguments[i].starts_with("--") && sign != std::string::npos)
      value = arguments[i].substr(sign + 1), isThere = !value.empty();
    else if (!arguments[i].starts_with("--") && arguments[i].size() > 2)
      value = arguments[i].substr(2), isThere = true;
    else if (row->type != FlagType::Switch && i + 1 < arguments.size())
      value = arguments[++i], isThere = true;
    visit(*row, isThere ? &value : nullptr);
  }
}

/// A number as TOML writes it: ".5" is 0.5, "1." is 1.0, "007" is 7. Empty where it is none.
std::string formatNumber(const std::string &text) {
  std::string number = text;
  const size_t sign = number.starts_with("-") ? 1 : 0;
  while (number.size() > sign + 1 && number[sign] == '0' && number[sign + 1] >= '0' &&
         number[sign + 1] <= '9')
    number.erase(sign, 1);
  if (size_t dot = number.find('.'); dot != std::string::npos) {
    if (dot + 1 == number.size() || number[dot + 1] == 'e' || number[dot + 1] == 'E')
      number.insert(dot + 1, "0");
    if (dot == sign)
      number.insert(dot, "0");
  }
  return isTomlFloat(number) ? number : "";
}

std::string formatValue(const FlagRow &row, const std::string &value) {
  if (row.type == FlagType::Switch)
    return "true";
  const std::string number = takes(row, TomlKind::Float) ? formatNumber(value)
                             : takes(row, TomlKind::Integer)
                                 ? (isTomlInteger(formatNumber(value)) ? formatNumber(value) : "")
                                 : "";
  // A string keeps "01024" as it is, and the artifact says it.
  const bool isString = number.empty() || (number != value && takes(row, TomlKind::String));
  return isString ? formatTomlString(value) : number;
}

/// "key = value", or a list.
std::string formatEntry(const FlagRow &row, const std::vector<std::string> &values) {
  std::string text = row.name + std::string(" = ");
  if (values.size() == 1)
    return text + formatValue(row, values.front()) + "\n";
  text += "[\n";
  for (const std::string &value : values)
    text += "  " + formatValue(row, value) + ",\n";
  return text + "]\n";
}

} // namespace

std::string Recipe::locate(std::string_view flag, size_t number) const {
  for (const GivenFlag &each : flags)
    if (flag == each.row->name && --number == 0)
      return file + ":" + std::to_string(each.line) + ": ";
  return "";
}

Expected<Recipe> parseRecipe(std::string_view text, const std::string &file, const CommandRow &command) {
  Expected<TomlFile> toml = parseToml(text);
  if (!toml)
    return Status::refusal(file + ":" + toml.getStatus().getMessage());
  auto refuse = [&](size_t line, const Status &status) {
    return Status::refusal(file + ":" + std::to_string(line) + ": " + status.getMessage());
  };
  for (const TomlTable &table : toml->tables)
    if (Status status = checkTable(table.name); !status.isOk())
      return refuse(table.line, status);
  for (const TomlEntry &entry : toml->entries)
    if (entry.table.empty())
      return refuse(entry.value.line,
                    Status::refusal("'" + entry.key +
                                    "' stands in front of the first table; the flags of ortc " +
                                    command.name + " go below [" + command.name + "]"));
  std::map<std::vector<std::string>, std::vector<const TomlEntry *>> entries;
  for (const TomlEntry &entry : toml->entries)
    entries[entry.table].push_back(&entry);
  std::vector<GivenFlag> own, shared;
  auto addTable = [&](const TomlTable &table) {
    const CommandRow &owner = *findCommand(table.name.front());
    const bool isOwn = std::string_view(owner.name) == command.name;
    auto add = [&](const FlagRow &row, const std::string &value, size_t line) {
      if (const FlagRow *found = isOwn ? &row : findShared(command, owner, row.name))
        (isOwn ? own : shared).push_back({found, value, line});
    };
    if (table.name.size() > 1)
      add(*owner.find(kBinding), table.name.back(), table.line);
    for (const TomlEntry *each : entries[table.name]) {
      const TomlEntry &entry = *each;
      Expected<const FlagRow *> row = findFlag(owner, entry);
      if (!row)
        return refuse(entry.value.line, row.getStatus());
      auto values = listValues(**row, entry.value);
      if (!values)
        return refuse(entry.value.line, values.getStatus());
      for (const auto &[value, line] : *values)
        add(**row, value, line);
    }
    return Status();
  };
  for (const bool isBinding : {false, true}) // shapes of no binding come first
    for (const TomlTable &table : toml->tables)
      if ((table.name.size() > 1) == isBinding)
        ORTC_TRY(addTable(table));
  Names names;
  for (const GivenFlag &each : own)
    names.insert(each.row->name);
  dropGiven(shared, joinBindings(command, std::move(names)));
  Recipe recipe{.file = file};
  for (const std::vector<GivenFlag> *each : {&shared, &own})
    recipe.flags.insert(recipe.flags.end(), each->begin(), each->end());
  return recipe;
}

Status addRecipe(const CommandRow &command, std::vector<std::string> &arguments, Recipe &recipe) {
  std::vector<std::string> files;
  Names onLine;
  Status status;
  visitFlags(command, arguments, [&](const FlagRow &row, const std::string *value) {
    onLine.insert(row.name);
    if (value && row.name == std::string_view("config"))
      files.push_back(*value);
    // CLI11 would take the next argument for the value of "--flag=".
    if (!value && row.type != FlagType::Switch && status.isOk())
      status = Status::refusal("--" + std::string(row.name) + " needs a value");
  });
  ORTC_TRY(status);
  if (files.size() != 1 || files.front().empty() || !command.find("config"))
    return Status(); // none, or a command line that is refused as others are
  std::string text;
  ORTC_TRY(readFile(files.front()).moveTo(text));
  ORTC_TRY(parseRecipe(text, files.front(), command).moveTo(recipe));
  const Names given = joinBindings(command, std::move(onLine));
  dropGiven(recipe.flags, given);
  std::vector<std::string> all;
  for (const GivenFlag &flag : recipe.flags)
    all.push_back("--" + std::string(flag.row->name) +
                  (flag.row->type == FlagType::Switch ? "" : "=" + flag.value));
  arguments.insert(arguments.begin(), all.begin(), all.end());
  return Status();
}

std::string formatRecipe(const CommandRow &command, const std::vector<GivenFlag> &flags) {
  std::string text = "[" + std::string(command.name) + "]\n", bindings;
  std::vector<std::pair<std::string, std::vector<std::string>>> shapes; ///< by binding, in order
  for (const GivenFlag &flag : flags) {
    if (!hasBindings(command))
      break;
    if (flag.row->name == std::string_view(kBinding))
      shapes.emplace_back(flag.value, std::vector<std::string>());
    else if (flag.row->name == std::string_view(kShape) && !shapes.empty())
      shapes.back().second.push_back(flag.value);
  }
  for (const FlagGroup &group : command.groups)
    for (const FlagRow &row : group.rows) {
      const std::string_view name = row.name;
      if (name == "config" || name == "write-config" || (name == kBinding && row.repeats))
        continue;
      std::vector<std::string> values;
      bool isBound = false; // shapes after the first binding are in tables
      for (const GivenFlag &flag : flags) {
        isBound |= flag.row->repeats && flag.row->name == std::string_view(kBinding);
        if (flag.row == &row && !(name == kShape && isBound))
          values.push_back(flag.value);
      }
      if (!values.empty())
        text += formatEntry(row, values);
    }
  for (const auto &[name, values] : shapes)
    bindings += "\n[" + std::string(command.name) + ".binding." + formatTomlKey(name) + "]\n" +
                (values.empty() ? "" : formatEntry(*command.find(kShape), values));
  return text + bindings;
}

} // namespace ortc::tool
