// The commands about commands: flags, completion, help.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Commands.h"
#include "tools/ortc/flags/Completion.h"
#include "tools/ortc/flags/Help.h"
#include "tools/ortc/flags/Pages.h"

namespace ortc::tool {

static Expected<const Command *> findCommand(const Tool &tool, const std::string &name) {
  std::vector<std::string> names;
  for (const Command &command : tool.commands) {
    if (command.row->name == name)
      return &command;
    names.emplace_back(command.row->name);
  }
  return Status::refusal(describeUnknown("command", name, names, "ortc"));
}

/// A flag with or without its dashes.
static Expected<const FlagRow *> findFlag(const Command &command, const std::string &name) {
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (const FlagRow *flag = command.row->find(bare))
    return flag;
  std::vector<std::string> names;
  for (const FlagGroup &group : command.row->groups)
    for (const FlagRow &flag : group.rows)
      names.push_back("--" + std::string(flag.name));
  return Status::refusal(
      describeUnknown("flag", "--" + bare, names, std::string("ortc ") + command.row->name));
}

static int print(const std::string &text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

static int printFlags(const Tool &tool, const std::string &about, const std::string &name,
                      const std::string &flag, const std::string &format) {
  std::vector<Command> commands = tool.commands;
  if (!name.empty()) {
    Expected<const Command *> found = findCommand(tool, name);
    if (!found)
      return finish(found.getStatus());
    commands = {**found};
  }
  if (!flag.empty()) {
    Expected<const FlagRow *> found = findFlag(commands.front(), flag);
    if (!found)
      return finish(found.getStatus());
    auto vocabulary = commands.front().vocabularies.find((*found)->name);
    if (vocabulary == commands.front().vocabularies.end())
      return reportError("--" + std::string((*found)->name) + " has no table of words; ortc help " + name +
                             " " + (*found)->name + " explains it",
                         2);
    const Vocabulary &words = vocabulary->second;
    return print(words.columns.empty() ? describeFlag(commands.front(), **found)
                                       : formatWordsMarkdown(words));
  }
  if (format == "json")
    return print(formatFlagsJson(commands, ORTC_VERSION));
  if (format == "man")
    return print(name.empty() ? formatManPage(commands, about, ORTC_VERSION)
                              : formatManPage(commands.front(), ORTC_VERSION));
  if (format == "markdown")
    return print(name.empty() ? formatCommandsMarkdown(commands) : formatFlagsMarkdown(commands.front()));
  return print(formatFlagsText(commands));
}

void addFlagsCommand(Tool &tool, const std::string &about) {
  struct State {
    std::string command, flag;
    bool json = false, markdown = false, man = false;
  };
  auto state = std::make_shared<State>();
  CommandLine line(tool, "flags");
  line.addPositional("COMMAND", state->command);
  line.addPositional("FLAG", state->flag);
  line.addFlag("json", state->json);
  line.addFlag("markdown", state->markdown);
  line.addFlag("man", state->man);
  line.setAction([state, &tool, about] {
    if (state->json + state->markdown + state->man > 1)
      return reportError("--json, --markdown and --man exclude each other; choose one", 2);
    if (!state->flag.empty() && (state->json || state->man))
      return reportError(std::string(state->json ? "--json" : "--man") +
                             " has all flags of a command; leave " + state->flag + " out",
                         2);
    return printFlags(tool, about, state->command, state->flag,
                      state->json       ? "json"
                      : state->markdown ? "markdown"
                      : state->man      ? "man"
                                        : "");
  });
}

void addCompletionCommand(Tool &tool) {
  auto shell = std::make_shared<std::string>();
  CommandLine line(tool, "completion");
  line.addPositional("SHELL", *shell);
  line.setAction([shell, &tool] {
    Expected<std::string> text = formatCompletion(*shell, tool.commands);
    return text ? print(*text) : finish(text.getStatus());
  });
}

int explain(const Tool &tool, const std::string &about, const std::string &name, const std::string &flag) {
  if (name.empty())
    return print(describeTool(about, tool.commands));
  Expected<const Command *> command = findCommand(tool, name);
  if (!command)
    return finish(command.getStatus());
  if (flag.empty() || flag == "all")
    return print(describeCommand(**command, /*isWhole=*/flag == "all"));
  Expected<const FlagRow *> row = findFlag(**command, flag);
  return row ? print(describeFlag(**command, **row)) : finish(row.getStatus());
}

void addHelpCommand(Tool &tool, const std::string &about) {
  CommandLine line(tool, "help"); // main() answers help of a command
  line.setAction([&tool, about] { return explain(tool, about, "", ""); });
}

} // namespace ortc::tool
