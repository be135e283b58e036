// CLI11 with our rules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/CommandLine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "engine/artifact/device_name.h"
#include "engine/session/averages.h"
#include "support/Message.h"
#include "support/Printable.h"
#include "tools/ortc/flags/Help.h"

namespace ortc::tool {

CommandLine::CommandLine(Tool &tool, const std::string &name)
    : tool(tool), row(*findCommand(name)), command(tool.app.add_subcommand(name, row.sentence)) {
  command->allow_extras(); // main() tells unknown flags apart itself, with a better message
  command->formatter_fn([&row = row](const CLI::App *, const std::string &, CLI::AppFormatMode) {
    return describeCommand({&row});
  });
  tool.commands.push_back({&row});
  if (row.find("config")) // main() has put the recipe in front of the flags
    addValue("config", [](const std::string &file) {
      return file.empty() ? Status::refusal("needs a value that is not empty") : Status();
    });
}

const FlagRow &CommandLine::getRow(const std::string &name) const {
  if (const FlagRow *found = row.find(name))
    return *found;
  throw std::logic_error("ortc " + std::string(row.name) + " has no row for --" + name);
}

const ArgumentRow &CommandLine::getArgument(const std::string &name) const {
  for (const ArgumentRow &argument : row.arguments)
    if (argument.name == name)
      return argument;
  throw std::logic_error("ortc " + std::string(row.name) + " has no row for " + name);
}

/// "-o,--output", as CLI11 takes it.
static std::string formatNames(const FlagRow &row) {
  return (row.letter ? "-" + std::string(1, row.letter) + "," : "") + "--" + row.name;
}

CLI::Option *CommandLine::add(const std::string &names, const std::string &shown, bool isRepeatable,
                              Handler handler) {
  auto isGiven = std::make_shared<bool>(false);
  auto run = [handler = std::move(handler), isGiven, isRepeatable, shown](const std::string &value) {
    if (*isGiven && !isRepeatable)
      throw CLI::ValidationError(shown, "given twice");
    *isGiven = true;
    if (Status status = handler(value); !status.isOk())
      throw CLI::ValidationError(shown, status.getMessage());
  };
  return command->add_option_function<std::string>(names, run)->trigger_on_parse()->allow_extra_args(false);
}

void CommandLine::addValue(const std::string &name, Handler handler) {
  const FlagRow &flag = getRow(name);
  add(formatNames(flag), "--" + name, flag.repeats,
      [&tool = tool, &flag, handler = std::move(handler)](const std::string &value) {
        tool.given.push_back({&flag, value});
        return handler(value);
      })
      ->required(flag.isNeeded);
}

void CommandLine::addHidden(const std::string &name, Handler handler) {
  add("--" + name, "--" + name, /*isRepeatable=*/false, std::move(handler))->group("");
}

void CommandLine::addText(const std::string &name, std::string &target) {
  addValue(name, [&target](const std::string &value) {
    target = value;
    return value.empty() ? Status::refusal("needs a value that is not empty") : Status();
  });
}

void CommandLine::addFlag(const std::string &name, bool &target, bool value) {
  const FlagRow &flag = getRow(name);
  command
      ->add_flag_callback(formatNames(flag),
                          [&tool = tool, &flag, &target, value] {
                            tool.given.push_back({&flag, ""});
                            target = value;
                          })
      ->disable_flag_override();
}

void CommandLine::addDevice(std::string &target) {
  addValue("device", [&target](const std::string &value) {
    engine::DeviceKind kind;
    uint32_t ordinal = 0;
    target = value;
    return engine::parseDevice(value, kind, ordinal);
  });
}

void CommandLine::addWeights(const std::string &name, std::string &target) {
  addValue(name, [&target](const std::string &value) {
    target = value;
    return engine::checkWeightsName(value);
  });
}

void CommandLine::addPositional(const std::string &name, std::string &target) {
  command->add_option(name, target)->required(getArgument(name).isNeeded);
}

void CommandLine::addPositionals(const std::string &name, std::vector<std::string> &targets) {
  for (size_t i = 0; i < tool.most; ++i)
    command
        ->add_option_function<std::string>(i ? name + std::to_string(i) : name,
                                           [&targets](const std::string &value) { targets.push_back(value); })
        ->required(i == 0 && getArgument(name).isNeeded);
}

void CommandLine::setVocabulary(const std::string &name, Vocabulary vocabulary) {
  tool.commands.back().vocabularies[getRow(name).name] = std::move(vocabulary);
}

void CommandLine::setAction(std::function<int()> run) {
  command->callback([&tool = tool, run = std::move(run)] { tool.action = run; });
}

std::function<std::string()> CommandLine::getRecipe() const {
  return [&tool = tool, &row = row] { return formatRecipe(row, tool.given); };
}

int reportError(const std::string &message, int exitCode) {
  printMessage("error", message);
  return exitCode;
}

int finish(const Status &status) {
  return status.isOk() ? 0 : reportError(status.getMessage(), static_cast<int>(status.getCode()));
}

/// Whether it is the list of what cannot be compiled, the only message of several lines: its items are printable.
static bool isList(std::string_view message, const std::string &model) {
  if (!message.starts_with(model + ": "))
    return false;
  message.remove_prefix(model.size() + 2);
  const size_t digits = std::min(message.find_first_not_of("0123456789"), message.size());
  message.remove_prefix(digits);
  return digits > 0 && (message.starts_with(" part of the model cannot be compiled:\n") ||
                        message.starts_with(" parts of the model cannot be compiled:\n"));
}

int finishCompiling(const Status &status, const std::string &model) {
  const std::string &message = status.getMessage();
  if (status.isOk() || !isList(message, model))
    return finish(status);
  std::fflush(stdout);
  std::fprintf(stderr, "ortc: error: %s%s\n", makePrintable(model).c_str(),
               message.substr(model.size()).c_str());
  return static_cast<int>(status.getCode());
}

int checkDevice(const std::string &device, uint32_t threads, bool profile) {
  if (device == "cpu")
    return 0;
  if (threads > 1)
    return reportError("--threads " + std::to_string(threads) + " is for --device cpu; with --device " +
                           device + " one thread waits for the device",
                       2);
  if (profile)
    return reportError(
        "--profile measures kernels of --device cpu; it cannot yet measure those of --device " + device, 2);
  return 0;
}

Expected<int64_t> parseWhole(const std::string &text, int64_t least, int64_t most) {
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  return Status::refusal("'" + text + "' must be a whole number of at least " + std::to_string(least) +
                         (most == INT64_MAX ? "" : " and at most " + std::to_string(most)));
}

} // namespace ortc::tool
