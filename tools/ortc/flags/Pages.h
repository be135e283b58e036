// The table of commands for programs and pages: JSON, Markdown, man.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

/// `ortc flags --json`: {"version", "commands": [{"name", "usage", "sentence", "arguments", "flags"}]}.
std::string formatFlagsJson(const std::vector<Command> &commands, const std::string &version);
/// A line for each flag.
std::string formatFlagsText(const std::vector<Command> &commands);
/// The tables of docs/commands/NAME.md.
std::string formatFlagsMarkdown(const Command &command);
/// The table of the words that a value may begin with.
std::string formatWordsMarkdown(const Vocabulary &vocabulary);
/// "| `command` | sentence |" for docs/command-line.md.
std::string formatCommandsMarkdown(const std::vector<Command> &commands);
/// ortc-NAME.1; of all commands, ortc.1.
std::string formatManPage(const Command &command, const std::string &version);
std::string formatManPage(const std::vector<Command> &commands, const std::string &about,
                          const std::string &version);

} // namespace ortc::tool
