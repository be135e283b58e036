// CLI11 with our rules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CLI11 runs callbacks in the order in which options were declared, splits values in brackets where an option takes
// several, and lets an option that may repeat eat the arguments after it. Here a handler runs for every occurrence of a
// flag, in the order of the command line, and gets exactly one value as it was written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include "support/Expected.h"
#include "tools/ortc/flags/Recipe.h"

namespace ortc::tool {

/// What the command line asks for; set while it is parsed, run after it. Returns the exit status.
using Action = std::function<int()>;

/// The command line of a process.
struct Tool {
  explicit Tool(CLI::App &app, size_t most) : app(app), most(most) {}

  CLI::App &app;
  size_t most; ///< arguments that the command line may have
  Action action = {};
  std::vector<Command> commands = {}; ///< of this build
  std::vector<GivenFlag> given = {};  ///< in the order of the command line
};

/// Adds the arguments of one command: a handler for each of its rows (tools/ortc/flags). What a handler refuses becomes
/// exit status 2.
class CommandLine {
public:
  CommandLine(Tool &tool, const std::string &name);

  using Handler = std::function<Status(const std::string &value)>;

  // Flags have the names of their rows, without dashes.

  /// A flag with a value.
  void addValue(const std::string &name, Handler handler);
  void addText(const std::string &name, std::string &target);
  /// A whole number of at least `least`.
  template <typename Number>
  void addWhole(const std::string &name, Number &target, int64_t least, int64_t most);
  void addFlag(const std::string &name, bool &target, bool value = true);
  /// Averages in place of parameters.
  void addWeights(const std::string &name, std::string &target);
  /// --device NAME.
  void addDevice(std::string &target);
  /// A flag without a row, for tests.
  void addHidden(const std::string &name, Handler handler);
  /// An argument without a name.
  void addPositional(const std::string &name, std::string &target);
  /// One or more of them.
  void addPositionals(const std::string &name, std::vector<std::string> &targets);
  /// What values of a flag are made of: for --help-FLAG, completions and pages. Before another command is added.
  void setVocabulary(const std::string &name, Vocabulary vocabulary);
  /// What runs when this command was given.
  void setAction(std::function<int()> run);
  /// The recipe of the flags that were given, once they are parsed.
  std::function<std::string()> getRecipe() const;

private:
  const FlagRow &getRow(const std::string &name) const;
  const ArgumentRow &getArgument(const std::string &name) const;
  CLI::Option *add(const std::string &names, const std::string &shown, bool isRepeatable, Handler handler);

  Tool &tool;
  const CommandRow &row;
  CLI::App *command;
};

/// Prints "ortc: error: ..." and returns the exit status, or returns 0.
int finish(const Status &status);
int reportError(const std::string &message, int exitCode);
/// finish() of what compiles `model`: parts of it that cannot be compiled are a list, a line each.
int finishCompiling(const Status &status, const std::string &model);

/// Refuses flags that a device cannot follow; 0 where there are none. `profile`: --profile is given.
int checkDevice(const std::string &device, uint32_t threads, bool profile);

/// Parses a whole number within limits; the error says them.
Expected<int64_t> parseWhole(const std::string &text, int64_t least, int64_t most);

template <typename Number>
void CommandLine::addWhole(const std::string &name, Number &target, int64_t least, int64_t most) {
  addValue(name, [&target, least, most](const std::string &text) {
    Expected<int64_t> value = parseWhole(text, least, most);
    if (value)
      target = static_cast<Number>(*value);
    return value.getStatus();
  });
}

} // namespace ortc::tool
