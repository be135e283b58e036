// Man pages of the commands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Help.h"
#include "tools/ortc/flags/Pages.h"

namespace ortc::tool {

/// Text for roff, on one line. Backslashes that begin its own marks are written after this.
static std::string escape(const std::string &text) {
  std::string escaped;
  for (char letter : text)
    escaped += letter == '\\'   ? "\\e"
               : letter == '-'  ? "\\-"
               : letter == '\'' ? "\\(aq"
               : letter == '^'  ? "\\(ha"
               : letter == '~'  ? "\\(ti"
               : letter == '`'  ? "\\(ga"
                                : std::string(1, letter);
  return escaped.starts_with(".") ? "\\&" + escaped : escaped;
}

/// Markdown as roff: words between backticks are bold.
static std::string format(const char *markdown) {
  constexpr char kBegin = '\1', kEnd = '\2';
  std::string text = escape(stripMarkdown(joinLines(markdown), std::string(1, kBegin), std::string(1, kEnd))),
              marked;
  for (char letter : text)
    marked += letter == kBegin ? "\\fB" : letter == kEnd ? "\\fR" : std::string(1, letter);
  return marked;
}

static std::string begin(const std::string &name, const std::string &sentence, const std::string &version) {
  std::string title = name;
  for (char &letter : title)
    letter = char(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  return ".TH " + escape(title) + " 1 \"\" \"ortc " + escape(version) + "\" \"ortc\"\n.SH NAME\n" +
         escape(name) + " \\- " + escape(sentence) + "\n.SH SYNOPSIS\n";
}

static std::string formatStatus() {
  return ".SH EXIT STATUS\n0: done. 1: it failed while running. 2: the input was refused. 128 + N: signal N "
         "ended it.\n";
}

std::string formatManPage(const Command &command, const std::string &version) {
  const CommandRow &row = *command.row;
  std::string text = begin("ortc-" + std::string(row.name), row.sentence, version) + ".B " +
                     escape(row.getUsage()) + "\n.SH DESCRIPTION\n" + escape(row.sentence) + ".\n";
  for (const ArgumentRow &argument : row.arguments)
    text += ".TP\n.I " + escape(argument.name) + "\n" + escape(argument.sentence) + "\n";
  if (!row.groups.empty())
    text += ".SH OPTIONS\n";
  for (const FlagGroup &group : row.groups) {
    text += ".SS " + escape(group.title) + "\n";
    for (const FlagRow &flag : group.rows) {
      const std::string value = *flag.value ? " \\fI" + escape(flag.getSyntax()) + "\\fR" : "";
      text += ".TP\n\\fB\\-\\-" + escape(flag.name) + "\\fR" + value;
      if (flag.letter)
        text += ", \\fB\\-" + std::string(1, flag.letter) + "\\fR" + value;
      text += "\n" + escape(flag.sentence) + ".\n";
      if (*flag.text)
        text += format(flag.text) + "\n";
      if (auto note = group.notes.find(flag.name); note != group.notes.end())
        text += format(note->second) + "\n";
    }
  }
  if (*row.example)
    text += ".SH EXAMPLES\n.nf\n" + escape(row.example) + "\n.fi\n";
  return text + formatStatus() + ".SH SEE ALSO\n.BR ortc (1)\n";
}

std::string formatManPage(const std::vector<Command> &commands, const std::string &about,
                          const std::string &version) {
  std::string text = begin("ortc", about, version) +
                     ".B ortc\n.I COMMAND\n[arguments] [flags]\n.SH DESCRIPTION\n" + escape(about) +
                     ".\n.SH COMMANDS\n";
  for (const Command &command : commands)
    text += ".TP\n.BR ortc\\-" + escape(command.row->name) + " (1)\n" + escape(command.row->sentence) + ".\n";
  return text + formatStatus() + ".SH ENVIRONMENT\n.TP\n.B ORTC_KERNEL_CACHE\nThe folder of " +
         "\\fB\\-\\-kernel\\-cache\\fR, where the flag is not given.\n";
}

} // namespace ortc::tool
