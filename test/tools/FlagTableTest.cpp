// The table of flags: what every row must be, and what is made of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tools/ortc/flags/Completion.h"
#include "tools/ortc/flags/Help.h"
#include "tools/ortc/flags/Pages.h"

using namespace ortc::tool;

namespace {

std::vector<Command> listAll() {
  std::vector<Command> commands;
  for (const CommandRow &row : listCommands())
    commands.push_back({&row});
  return commands;
}

template <typename Visit> void forEachRow(Visit visit) {
  for (const CommandRow &command : listCommands())
    for (const FlagGroup &group : command.groups)
      for (const FlagRow &row : group.rows)
        visit(command, row);
}

std::vector<std::string> splitLines(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

} // namespace

TEST(FlagTableTest, HelpOfACommandFitsAScreen) {
  for (const Command &command : listAll()) {
    const std::vector<std::string> lines = splitLines(describeCommand(command));
    EXPECT_LE(lines.size(), 70u) << command.row->name;
    for (const std::string &line : lines)
      EXPECT_LE(line.size(), kHelpWidth) << command.row->name << ": " << line;
  }
}

TEST(FlagTableTest, RareFlagsAreInTheWholeHelpOnly) {
  const Command train{findCommand("train")};
  EXPECT_EQ(describeCommand(train).find("--dump-ir"), std::string::npos);
  EXPECT_NE(describeCommand(train, /*isWhole=*/true).find("--dump-ir DIR"), std::string::npos);
}

/// Words that a sentence may begin with: what a command or a flag does.
TEST(FlagTableTest, SentencesBeginWithAVerb) {
  const std::set<std::string> verbs = {
      "Add",     "Allow",   "Assemble", "Average", "Begin",  "Bind",  "Change", "Check",    "Choose",
      "Clip",    "Compare", "Compile",  "Compute", "Do",     "Draw",  "End",    "Evaluate", "Exclude",
      "Fail",    "Give",    "Go",       "Keep",    "Learn",  "Leave", "Limit",  "List",     "Make",
      "Measure", "Pass",    "Penalize", "Predict", "Print",  "Read",  "Round",  "Run",      "Save",
      "Scale",   "Seed",    "Set",      "Share",   "Show",   "Sign",  "Stop",   "Store",    "Take",
      "Train",   "Update",  "Use",      "Watch",   "Weight", "Write"};
  auto check = [&](const std::string &where, const std::string &sentence) {
    EXPECT_TRUE(verbs.count(sentence.substr(0, sentence.find(' ')))) << where << ": " << sentence;
    EXPECT_FALSE(sentence.ends_with(".")) << where << ": " << sentence;
  };
  for (const CommandRow &command : listCommands())
    check(command.name, command.sentence);
  forEachRow([&](const CommandRow &command, const FlagRow &row) {
    check(std::string(command.name) + " --" + row.name, row.sentence);
  });
}

TEST(FlagTableTest, TextsArePlainEnglish) {
  forEachRow([&](const CommandRow &command, const FlagRow &row) {
    const std::string text = std::string(row.sentence) + ". " + joinLines(row.text);
    for (const char *word : {" behind", " alone", "is said", "are said", "but for", ". What ", ". Of ", "  "})
      EXPECT_EQ(text.find(word), std::string::npos) << command.name << " --" << row.name << ": " << word;
    EXPECT_TRUE(!*row.text || text.ends_with(".")) << command.name << " --" << row.name;
  });
}

TEST(FlagTableTest, RowsAreWhole) {
  std::set<std::string> names;
  forEachRow([&](const CommandRow &command, const FlagRow &row) {
    const std::string name = std::string(command.name) + " --" + row.name;
    EXPECT_TRUE(names.insert(name).second) << name << " stands there twice";
    EXPECT_EQ(*row.value == 0, row.type == FlagType::Switch) << name;
    EXPECT_FALSE(row.repeats && (row.type == FlagType::Switch || row.type == FlagType::Whole)) << name;
    EXPECT_TRUE(row.type != FlagType::Choice || *row.words) << name << " has no words";
    EXPECT_EQ(command.find(row.name), &row) << name;
  });
}

TEST(FlagTableTest, AFlagIsExplainedWithItsWords) {
  Command train{findCommand("train")};
  train.vocabularies["optimizer"] = {.words = {{.name = "sgd",
                                                .meaning = "gradient descent",
                                                .keys = {{"lr", "0.1", "learning rate", "a number"}}}},
                                     .others = {"onnx:FILE"},
                                     .initial = "sgd"};
  EXPECT_EQ(describeFlag(train, *train.row->find("clip-value")),
            "--clip-value X\n  Clip every element of a gradient.\n");
  const std::string text = describeFlag(train, *train.row->find("optimizer"));
  EXPECT_NE(text.find("\n  sgd (default)\n      gradient descent\n        lr=0.1: learning rate; a number\n  "
                      "onnx:FILE\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(train.listWords(*train.row->find("optimizer")), std::vector<std::string>{"sgd"});
  // Of another command with what differs there.
  const Command check{findCommand("check")};
  EXPECT_NE(describeFlag(check, *check.row->find("train")).find("Fewer tensors take less time."),
            std::string::npos);
}

TEST(FlagTableTest, MarkdownIsStripped) {
  EXPECT_EQ(stripMarkdown("a `b` ([exporters](../e.md#x)), [c] `d[e](f)`"), "a b (exporters), [c] d[e](f)");
  EXPECT_EQ(stripMarkdown("`b` c", "<", ">"), "<b> c");
}

TEST(FlagTableTest, TablesEscapeTheirMarks) {
  const Command train{findCommand("train")};
  const std::string text = formatFlagsMarkdown(train);
  EXPECT_NE(text.find("\n| `--train REGEX:channels=1\\|@FILE` | Train these"), std::string::npos);
  EXPECT_NE(text.find("\n| `--output DIR`, `-o DIR` | "), std::string::npos);
  const std::string plan = formatFlagsMarkdown({findCommand("plan")});
  EXPECT_NE(
      plan.find("| `--clip-norm X` | Clip the norm of all gradients together. As for [`train`](train.md). |"),
      std::string::npos);
}

TEST(FlagTableTest, OtherShellsAreRefused) {
  EXPECT_EQ(
      formatCompletion("bsh", listAll()).getStatus().getMessage(),
      "there are no completions for 'bsh'; there are some for bash, zsh and fish; did you mean 'bash'?");
}
