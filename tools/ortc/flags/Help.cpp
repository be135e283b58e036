// What --help prints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Help.h"

#include <algorithm>

#include "support/EditDistance.h"

namespace ortc::tool {

/// Words in lines of at most `width` columns that begin with `indent` blanks.
static std::string fill(const std::string &text, size_t indent, size_t width = kHelpWidth) {
  std::string filled, line;
  for (const std::string &word : splitWords(text)) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      filled += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return filled + (line.empty() ? "" : std::string(indent, ' ') + line + "\n");
}

std::string stripMarkdown(std::string_view text, std::string_view boldBegin, std::string_view boldEnd) {
  std::string plain;
  bool isCode = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') {
      plain += isCode ? boldEnd : boldBegin;
      isCode = !isCode;
    } else if (text[i] == ']' && !isCode && text.substr(i, 2) == "](") {
      i = std::min(text.find(')', i), text.size() - 1); // the place of a link
    } else if (text[i] == '[' && !isCode && text.find("](", i) < text.find(']', i) + 1) {
      continue; // the begin of a link's text
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// "  -o, --output DIR"
static std::string formatFlag(const FlagRow &row, const char *value) {
  std::string text = row.letter ? "  -" + std::string(1, row.letter) + ", --" : "  --";
  return text + row.name + (*value ? " " : "") + value;
}

static std::string pad(const std::string &text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

/// Ends a sentence of a table.
static std::string endSentence(const std::string &text) { return text.empty() ? "" : text + "."; }

/// A flag whose value needs explaining, or the first one.
static std::string pickExample(const CommandRow &command) {
  for (const char *name : {"loss", "lr-schedule", "metric"})
    if (command.find(name))
      return name;
  return command.groups.front().rows.front().name;
}

std::string describeCommand(const Command &command, bool isWhole) {
  const CommandRow &row = *command.row;
  std::string text = endSentence(row.sentence) + "\nUsage: " + row.getUsage() + "\n";
  size_t width = 0;
  for (const ArgumentRow &argument : row.arguments)
    width = std::max(width, std::string(argument.name).size() + 2);
  bool hasRare = false;
  auto isShown = [&](const FlagRow &flag) { return isWhole || !flag.isRare; };
  for (const FlagGroup &group : row.groups)
    for (const FlagRow &flag : group.rows) {
      hasRare |= flag.isRare;
      if (isShown(flag))
        width = std::max(width, formatFlag(flag, flag.value).size());
    }
  for (const ArgumentRow &argument : row.arguments)
    text += pad(std::string("  ") + argument.name, width + 2) + argument.sentence + "\n";
  for (const FlagGroup &group : row.groups) {
    text += group.title + std::string(":\n");
    for (const FlagRow &flag : group.rows)
      if (isShown(flag))
        text += pad(formatFlag(flag, flag.value), width + 2) + flag.sentence + "\n";
  }
  if (!row.groups.empty())
    text += "--help-FLAG explains one flag, as --help-" + pickExample(row) + " does" +
            (hasRare && !isWhole ? "; --help-all shows rare flags, too.\n" : ".\n");
  if (*row.example) {
    std::string example = row.example;
    for (size_t at = 0; (at = example.find('\n', at)) != std::string::npos; at += 3)
      example.insert(at + 1, "  ");
    text += "Example:\n  " + example + "\n";
  }
  return text;
}

/// The words of a value, with their keys.
static std::string describeVocabulary(const Vocabulary &vocabulary) {
  std::string text;
  for (const Word &word : vocabulary.words) {
    text += "  " + word.name + word.suffix + (word.name == vocabulary.initial ? " (default)" : "") + "\n" +
            fill(word.meaning, 6);
    std::string names; // of keys of which nothing else is known
    for (const Word::Key &key : word.keys)
      if (key.meaning.empty())
        names += (names.empty() ? "keys: " : ", ") + key.name;
      else
        text += fill(key.name + "=" + key.initial + ": " + key.meaning + "; " + key.range, 8);
    text += fill(names, 6);
  }
  for (const std::string &other : vocabulary.others)
    text += "  " + other + "\n";
  return text;
}

std::string describeFlag(const Command &command, const FlagRow &flag) {
  std::string text = formatFlag(flag, flag.getSyntax()).substr(2) + "\n" +
                     fill(endSentence(flag.sentence), 2) + fill(stripMarkdown(flag.text), 2);
  for (const FlagGroup &group : command.row->groups)
    if (auto note = group.notes.find(flag.name); note != group.notes.end())
      text += fill(stripMarkdown(note->second), 2);
  if (*flag.words)
    text += fill("Values: " + joinLines(flag.words), 2);
  auto vocabulary = command.vocabularies.find(flag.name);
  return text + (vocabulary == command.vocabularies.end() ? "" : describeVocabulary(vocabulary->second));
}

std::string describeUnknown(const std::string &kind, const std::string &word,
                            const std::vector<std::string> &words, const std::string &owner) {
  const std::string meant = suggestWord(word, words);
  return "unknown " + kind + " '" + word + "'" +
         (meant.empty() ? "; " + owner + " --help lists what there is" : meant);
}

std::string describeTool(const std::string &about, const std::vector<Command> &commands) {
  std::string text = about + ".\nUsage: ortc COMMAND [arguments] [flags]\n\nCommands:\n";
  for (const Command &command : commands)
    text += pad(std::string("  ") + command.row->name, 14) + command.row->sentence + "\n";
  return text + "\nortc COMMAND --help lists the flags of a command, ortc --version prints the version.\n";
}

} // namespace ortc::tool
