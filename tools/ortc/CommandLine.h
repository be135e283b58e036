// CLI11 with our rules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CLI11 runs callbacks in the order in which options were declared, splits values in brackets, and lets an
// option that may repeat eat the arguments after it. Here a handler runs for every occurrence of a flag, in
// the order of the command line, and gets exactly one value as it was written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <CLI/CLI.hpp>

#include "support/Expected.h"

namespace ortc::tool {

/// Adds the arguments of one command. What a handler refuses becomes exit status 2.
class CommandLine {
public:
  CommandLine(CLI::App &app, const std::string &name, const std::string &summary);

  using Handler = std::function<Status(const std::string &value)>;

  /// A flag with a value. `names` as CLI11 takes them, e.g. "-o,--output".
  void addValue(const std::string &names, const std::string &type, const std::string &help, Handler handler,
                bool isRepeatable = false);
  /// The same, not in --help.
  void addHidden(const std::string &names, const std::string &type, const std::string &help, Handler handler);
  void addText(const std::string &names, const std::string &type, const std::string &help,
               std::string &target, bool isRequired = false);
  /// A whole number of at least `least`.
  template <typename Number>
  void addWhole(const std::string &names, const std::string &help, Number &target, int64_t least,
                int64_t most);
  void addFlag(const std::string &names, const std::string &help, bool &target, bool value = true);
  /// The flag `name`: averages in place of parameters.
  void addWeights(const std::string &name, std::string &target);
  /// --device NAME.
  void addDevice(std::string &target);
  /// An argument without a name.
  void addPositional(const std::string &name, const std::string &help, std::string &target,
                     bool isRequired = true);
  /// One or more of them.
  void addPositionals(const std::string &name, const std::string &help, std::vector<std::string> &targets);
  /// What --help ends with.
  void setExample(const std::string &text);
  /// What runs when this command was given.
  void setAction(std::function<int()> &action, std::function<int()> run);

private:
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
void CommandLine::addWhole(const std::string &names, const std::string &help, Number &target, int64_t least,
                           int64_t most) {
  addValue(names, "N", help, [&target, least, most](const std::string &text) {
    Expected<int64_t> value = parseWhole(text, least, most);
    if (value)
      target = static_cast<Number>(*value);
    return value.getStatus();
  });
}

} // namespace ortc::tool
