// What --help prints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

/// The columns of a line of help, at most.
inline constexpr size_t kHelpWidth = 100;

/// `ortc COMMAND --help`: a line for each flag; with `isWhole`, rare ones, too.
std::string describeCommand(const Command &command, bool isWhole = false);
/// `ortc COMMAND --help-FLAG`: everything about one.
std::string describeFlag(const Command &command, const FlagRow &flag);
/// `ortc --help`: a line for each command.
std::string describeTool(const std::string &about, const std::vector<Command> &commands);

/// "unknown command 'trian'; did you mean 'train'?", or where all `words` are listed: `owner` is "ortc" or "ortc NAME".
std::string describeUnknown(const std::string &kind, const std::string &word,
                            const std::vector<std::string> &words, const std::string &owner);

/// Text of a table without its Markdown: "[exporters](../exporters.md)" is "exporters". With `bold`, text between
/// backticks goes between the two marks.
std::string stripMarkdown(std::string_view text, std::string_view boldBegin = "",
                          std::string_view boldEnd = "");

} // namespace ortc::tool
