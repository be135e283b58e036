// The flags of every command, once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Help, the JSON of `ortc flags`, recipes, completions, man pages, the tables of docs/commands and the keywords of the
// Python package are made from these rows. A command adds a handler for each of its rows (tools/ortc/CommandLine.h).
// docs/adding-a-flag.md has the steps.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::tool {

/// The form of a value: recipes check it, the Python package types its keyword by it, shells complete it.
enum class FlagType {
  Switch,     ///< none
  Whole,      ///< 8
  Number,     ///< 0.5
  Bytes,      ///< 65536, or 512MiB
  Count,      ///< 8, or 8:by=tokens
  Scale,      ///< 1024, or dynamic:init=65536
  Text,       ///< a name
  Choice,     ///< one of the row's words, with keys after it where there are some
  Spec,       ///< NAME:KEY=VALUE,...
  Settings,   ///< KEY=VALUE,...
  Assignment, ///< NAME=SPEC
  Pattern,    ///< REGEX:KEY=VALUE,...
  Losses,     ///< [NAME=]SPEC
  File,
  Folder
};

/// "file", as the JSON has it.
const char *nameOf(FlagType type);

/// A flag. Rows are written with designated initialisers, in the order of the fields.
struct FlagRow {
  const char *name;       ///< without dashes
  bool isRare = false;    ///< --help-all shows it, --help does not
  char letter = 0;        ///< of a short form
  const char *value = ""; ///< as --help shows it; "" of a switch
  FlagType type = FlagType::Switch;
  bool repeats = false;    ///< may be given several times
  bool isNeeded = false;   ///< the command refuses to run without it
  bool writes = false;     ///< the value is a file that the command writes
  const char *words = "";  ///< of a Choice or a Scale, with blanks between them
  const char *sentence;    ///< imperative, no full stop, short enough for a line of --help
  const char *text = "";   ///< the rest, in Markdown
  const char *syntax = ""; ///< the value with all its keys, where `value` is shorter

  const char *getSyntax() const { return *syntax ? syntax : value; }
};

/// Rows under one title.
struct FlagGroup {
  const char *title;
  std::vector<FlagRow> rows;
  const char *command = "";                       ///< whose rows they are, where another command shares them
  std::map<std::string, const char *> notes = {}; ///< what differs then, by the name of a row

  /// The same rows for another command.
  FlagGroup share(const char *owner, std::map<std::string, const char *> differences = {}) const;
};

/// An argument without a name.
struct ArgumentRow {
  const char *name; ///< "MODEL"
  FlagType type;
  const char *sentence; ///< a noun phrase
  bool repeats = false, isNeeded = true;
  const char *words = "";
};

/// A command, its arguments and its flags.
struct CommandRow {
  const char *name;
  const char *sentence; ///< imperative, no full stop
  std::vector<ArgumentRow> arguments;
  std::vector<FlagGroup> groups;
  const char *example = ""; ///< lines with \n between them

  const FlagRow *find(std::string_view flag) const;
  /// The flag that an argument of the command line begins with, "--report=FILE" or "-oDIR"; null where it is none.
  const FlagRow *findGiven(std::string_view argument) const;
  /// "ortc train MODEL -o DIR [flags]": with the flags that are needed.
  std::string getUsage() const;
};

/// A name that a value may begin with, and its keys.
struct Word {
  struct Key {
    std::string name, initial = {}, meaning = {}, range = {}; ///< of some only the name is known
  };
  std::string name;
  std::string suffix = {}; ///< what follows the name in the documentation: "@A+B"
  std::string meaning = {};
  std::vector<Key> keys = {};
  std::string note = {}; ///< the last column of the documentation's table, in Markdown
};

/// What a value of a flag is made of, where that is a language of its own; from the tables of the compiler.
struct Vocabulary {
  std::vector<Word> words;
  std::vector<std::string> others = {};   ///< forms that are no word: "onnx:FILE"
  std::string initial = {};               ///< the default
  std::vector<const char *> columns = {}; ///< titles of the documentation's table
};

/// A command of this build: its rows, and the vocabularies of its flags, by name.
struct Command {
  const CommandRow *row;
  std::map<std::string, Vocabulary, std::less<>> vocabularies = {};

  /// The words that a shell offers for a value.
  std::vector<std::string> listWords(const FlagRow &flag) const;
};

/// All commands, also those that this build is without. Help and documentation have the order of main.cpp.
const std::vector<CommandRow> &listCommands();
const CommandRow *findCommand(std::string_view name);

// Groups that commands share.
const FlagGroup &modelFlags();     ///< what is compiled, and its loss
const FlagGroup &trainedFlags();   ///< what is trained
const FlagGroup &trainModeFlags(); ///< how the model computes in training
const FlagGroup &updateFlags();
const FlagGroup &entryFlags(); ///< what steps take and give
const FlagGroup &targetFlags();
/// --quiet of commands that print nothing but errors with it.
FlagRow quietFlag();

CommandRow describeTrain();
CommandRow describePlan();
CommandRow describeCheck();
CommandRow describeUpdate();
CommandRow describeRun();
CommandRow describeEval();
CommandRow describePredict();
CommandRow describeGradients();
CommandRow describeReport();
CommandRow describeExport();
CommandRow describeDelta();
CommandRow describeMerge();
CommandRow describeOps();
CommandRow describeInspect();
CommandRow describeSign();
CommandRow describeVerify();
CommandRow describeFlags();
CommandRow describeCompletion();
CommandRow describeHelp();

/// Words of Markdown without line breaks and repeated blanks.
std::string joinLines(std::string_view text);
/// "a b c" as words.
std::vector<std::string> splitWords(std::string_view text);

} // namespace ortc::tool
