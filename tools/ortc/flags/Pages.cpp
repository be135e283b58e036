// The table of commands for programs and pages: JSON and Markdown.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Pages.h"

#include <nlohmann/json.hpp>

namespace ortc::tool {

using Json = nlohmann::ordered_json;

static Json describeRow(const Command &command, const FlagGroup &group, const FlagRow &row) {
  Json json = {
      {"name", row.name}, {"type", nameOf(row.type)}, {"group", group.title}, {"sentence", row.sentence}};
  if (row.letter)
    json["letter"] = std::string(1, row.letter);
  if (*row.value)
    json["syntax"] = row.getSyntax();
  if (row.repeats)
    json["repeats"] = true;
  if (row.isNeeded)
    json["needed"] = true;
  if (std::vector<std::string> words = command.listWords(row); !words.empty())
    json["words"] = words;
  if (*row.text)
    json["text"] = joinLines(row.text);
  return json;
}

std::string formatFlagsJson(const std::vector<Command> &commands, const std::string &version) {
  Json list = Json::array();
  for (const Command &command : commands) {
    Json arguments = Json::array(), flags = Json::array();
    for (const ArgumentRow &argument : command.row->arguments) {
      Json json = {{"name", argument.name}, {"type", nameOf(argument.type)}, {"sentence", argument.sentence}};
      if (argument.repeats)
        json["repeats"] = true;
      if (argument.isNeeded)
        json["needed"] = true;
      arguments.push_back(std::move(json));
    }
    for (const FlagGroup &group : command.row->groups)
      for (const FlagRow &row : group.rows)
        flags.push_back(describeRow(command, group, row));
    list.push_back({{"name", command.row->name},
                    {"usage", command.row->getUsage()},
                    {"sentence", command.row->sentence},
                    {"arguments", std::move(arguments)},
                    {"flags", std::move(flags)}});
  }
  return Json{{"version", version}, {"commands", std::move(list)}}.dump(1) + "\n";
}

std::string formatFlagsText(const std::vector<Command> &commands) {
  std::string text;
  for (const Command &command : commands)
    for (const FlagGroup &group : command.row->groups)
      for (const FlagRow &row : group.rows)
        text += std::string(command.row->name) + " --" + row.name + (*row.value ? " " : "") + row.value +
                ": " + row.sentence + "\n";
  return text;
}

/// A cell of a table.
static std::string escapeCell(const std::string &text) {
  std::string escaped;
  for (char letter : text)
    escaped += letter == '|' ? "\\|" : std::string(1, letter);
  return escaped;
}

std::string formatFlagsMarkdown(const Command &command) {
  std::string text;
  for (const FlagGroup &group : command.row->groups) {
    text += "\n**" + std::string(group.title) + "**\n\n| flag | meaning |\n|---|---|\n";
    for (const FlagRow &row : group.rows) {
      const std::string value = (*row.value ? " " : "") + std::string(row.getSyntax());
      std::string names = "`--" + std::string(row.name) + value + "`";
      if (row.letter)
        names += ", `-" + std::string(1, row.letter) + value + "`";
      std::string meaning = row.sentence + std::string(".");
      if (*group.command) {
        meaning += " As for [`" + std::string(group.command) + "`](" + group.command + ".md).";
        if (auto note = group.notes.find(row.name); note != group.notes.end())
          meaning += std::string(" ") + note->second;
      } else if (*row.text) {
        meaning += " " + joinLines(row.text);
      }
      text += "| " + escapeCell(names) + " | " + escapeCell(meaning) + " |\n";
    }
  }
  return text.empty() ? "No flags.\n" : text.substr(1);
}

std::string formatWordsMarkdown(const Vocabulary &vocabulary) {
  std::string text, line;
  for (const char *column : vocabulary.columns) {
    text += "| " + std::string(column) + " ";
    line += "|---";
  }
  text += "|\n" + line + "|\n";
  for (const Word &word : vocabulary.words) {
    std::string keys;
    for (const Word::Key &key : word.keys)
      keys += (keys.empty() ? "`" : ", `") + key.name + "=" + key.initial + "` (" + key.meaning + "; " +
              key.range + ")";
    text += "| `" + word.name + word.suffix + "` | " + word.meaning + " | " + (keys.empty() ? "none" : keys) +
            " | " + word.note + " |\n";
  }
  return text;
}

std::string formatCommandsMarkdown(const std::vector<Command> &commands) {
  std::string text = "| command | what it does |\n|---|---|\n";
  for (const Command &command : commands)
    text += "| [`" + escapeCell(command.row->getUsage()) + "`](commands/" + command.row->name + ".md) | " +
            command.row->sentence + " |\n";
  return text;
}

} // namespace ortc::tool
