// The table of commands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

#include <algorithm>

namespace ortc::tool {

const char *nameOf(FlagType type) {
  static constexpr const char *kNames[] = {"switch",     "whole",   "number", "bytes", "count",
                                           "scale",      "text",    "choice", "spec",  "settings",
                                           "assignment", "pattern", "losses", "file",  "folder"};
  return kNames[static_cast<size_t>(type)];
}

FlagGroup FlagGroup::share(const char *owner, std::map<std::string, const char *> differences) const {
  FlagGroup shared = *this;
  shared.command = owner;
  shared.notes = std::move(differences);
  return shared;
}

const FlagRow *CommandRow::find(std::string_view flag) const {
  for (const FlagGroup &group : groups)
    for (const FlagRow &row : group.rows)
      if (flag == row.name)
        return &row;
  return nullptr;
}

const FlagRow *CommandRow::findGiven(std::string_view argument) const {
  for (const FlagGroup &group : groups)
    for (const FlagRow &row : group.rows)
      if (argument.substr(0, argument.find('=')) == "--" + std::string(row.name) ||
          (row.letter && argument.starts_with("-" + std::string(1, row.letter))))
        return &row;
  return nullptr;
}

std::string CommandRow::getUsage() const {
  std::string usage = std::string("ortc ") + name;
  for (const ArgumentRow &argument : arguments) {
    const std::string shown = argument.name + std::string(argument.repeats ? " ..." : "");
    usage += argument.isNeeded ? " " + shown : " [" + shown + "]";
  }
  for (const FlagGroup &group : groups)
    for (const FlagRow &row : group.rows) {
      if (!row.isNeeded && row.letter != 'o')
        continue;
      const std::string shown =
          (row.letter ? "-" + std::string(1, row.letter) : "--" + std::string(row.name)) + " " + row.value;
      usage += row.isNeeded ? " " + shown : " [" + shown + "]";
    }
  return usage + (groups.empty() ? "" : " [flags]");
}

std::vector<std::string> Command::listWords(const FlagRow &flag) const {
  std::vector<std::string> words = splitWords(flag.words);
  if (auto found = vocabularies.find(flag.name); found != vocabularies.end())
    for (const Word &word : found->second.words)
      words.push_back(word.name);
  return words;
}

FlagRow quietFlag() { return {.name = "quiet", .sentence = "Print nothing but errors"}; }

/// Every command that works takes a recipe.
static CommandRow withRecipe(CommandRow command, bool writes = false) {
  FlagGroup recipe = {
      "Recipe",
      {{.name = "config",
        .value = "FILE.toml",
        .type = FlagType::File,
        .sentence = "Take flags from this recipe; the command line wins",
        .text =
            R"(A recipe is a TOML file with a table for each command ([recipes](../command-line.md#recipes)).)"}}};
  if (writes)
    recipe.rows.push_back(
        {.name = "write-config",
         .value = "FILE.toml",
         .type = FlagType::File,
         .writes = true,
         .sentence = "Write the flags of this command line as a recipe",
         .text =
             R"(All flags of the command line and of its `--config`; `ortc train MODEL --config FILE.toml` makes the
same artifact.)"});
  command.groups.push_back(std::move(recipe));
  return command;
}

CommandRow describeFlags() {
  return {.name = "flags",
          .sentence = "List the flags of all commands, or of one",
          .arguments = {{.name = "COMMAND",
                         .type = FlagType::Text,
                         .sentence = "only this command",
                         .isNeeded = false},
                        {.name = "FLAG",
                         .type = FlagType::Text,
                         .sentence = "only the words of this flag's value",
                         .isNeeded = false}},
          .groups = {{"Format",
                      {{.name = "json", .sentence = "Print JSON, for programs"},
                       {.name = "markdown", .sentence = "Print the tables of docs/commands"},
                       {.name = "man", .sentence = "Print a man page"}}}}};
}

CommandRow describeCompletion() {
  return {.name = "completion",
          .sentence = "Print the completions of a shell",
          .arguments = {{.name = "SHELL",
                         .type = FlagType::Choice,
                         .sentence = "bash, zsh or fish",
                         .words = "bash zsh fish"}},
          .groups = {},
          .example = "source <(ortc completion bash)"};
}

CommandRow describeHelp() {
  return {.name = "help",
          .sentence = "List the commands, show the flags of one, or explain a flag",
          .arguments =
              {{.name = "COMMAND", .type = FlagType::Text, .sentence = "the command", .isNeeded = false},
               {.name = "FLAG", .type = FlagType::Text, .sentence = "one of its flags", .isNeeded = false}},
          .groups = {}};
}

const std::vector<CommandRow> &listCommands() {
  static const std::vector<CommandRow> commands = {withRecipe(describeTrain(), /*writes=*/true),
                                                   withRecipe(describePlan()),
                                                   withRecipe(describeCheck()),
                                                   withRecipe(describeUpdate()),
                                                   describeOps(),
                                                   withRecipe(describeRun()),
                                                   withRecipe(describeReport()),
                                                   withRecipe(describeEval()),
                                                   withRecipe(describePredict()),
                                                   withRecipe(describeGradients()),
                                                   withRecipe(describeExport()),
                                                   describeInspect(),
                                                   withRecipe(describeDelta()),
                                                   withRecipe(describeMerge()),
                                                   withRecipe(describeSign()),
                                                   withRecipe(describeVerify()),
                                                   describeFlags(),
                                                   describeCompletion(),
                                                   describeHelp()};
  return commands;
}

const CommandRow *findCommand(std::string_view name) {
  for (const CommandRow &command : listCommands())
    if (name == command.name)
      return &command;
  return nullptr;
}

std::string joinLines(std::string_view text) {
  std::string joined;
  for (const std::string &word : splitWords(text))
    joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

std::vector<std::string> splitWords(std::string_view text) {
  constexpr std::string_view kBlanks = " \n";
  std::vector<std::string> words;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != text.npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

} // namespace ortc::tool
