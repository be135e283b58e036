// CLI11 with our rules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/CommandLine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include "host/averages.h"
#include "host/device_name.h"
#include "host/text.h"
#include "support/Printable.h"

namespace ortc::tool {

CommandLine::CommandLine(CLI::App &app, const std::string &name, const std::string &summary)
    : command(app.add_subcommand(name, summary)) {
  command->allow_extras(); // main() tells unknown flags apart itself, with a better message
}

/// Lines of a width that stays readable beside the column of flags.
static std::string wrap(const std::string &text) {
  constexpr size_t kWidth = 90;
  std::string wrapped;
  size_t begin = 0;
  while (text.size() - begin > kWidth) {
    size_t blank = text.rfind(' ', begin + kWidth), comma = text.rfind(',', begin + kWidth - 1);
    bool hasBlank = blank != std::string::npos && blank > begin;
    if (!hasBlank && (comma == std::string::npos || comma <= begin))
      break;
    size_t end = hasBlank ? blank : comma + 1;
    wrapped += text.substr(begin, end - begin) + "\n";
    begin = hasBlank ? end + 1 : end;
  }
  return wrapped + text.substr(begin);
}

void CommandLine::addValue(const std::string &names, const std::string &type, const std::string &help,
                           Handler handler, bool isRepeatable) {
  auto isGiven = std::make_shared<bool>(false);
  std::string shown = names.substr(names.rfind(',') + 1);
  auto run = [handler = std::move(handler), isGiven, isRepeatable, shown](const std::string &value) {
    if (*isGiven && !isRepeatable)
      throw CLI::ValidationError(shown, "given twice");
    *isGiven = true;
    if (Status status = handler(value); !status.isOk())
      throw CLI::ValidationError(shown, status.getMessage());
  };
  command->add_option_function<std::string>(names, run, wrap(help))
      ->trigger_on_parse()
      ->allow_extra_args(false)
      ->type_name(type);
}

void CommandLine::addHidden(const std::string &names, const std::string &type, const std::string &help,
                            Handler handler) {
  addValue(names, type, help, std::move(handler));
  command->get_option(names)->group("");
}

void CommandLine::addText(const std::string &names, const std::string &type, const std::string &help,
                          std::string &target, bool isRequired) {
  addValue(names, type, help, [&target](const std::string &value) {
    target = value;
    return value.empty() ? Status::refusal("needs a value that is not empty") : Status();
  });
  if (isRequired)
    command->get_option(names.substr(names.rfind(',') + 1))->required();
}

void CommandLine::addFlag(const std::string &names, const std::string &help, bool &target, bool value) {
  command->add_flag_callback(
             names, [&target, value] { target = value; }, wrap(help))
      ->disable_flag_override();
}

void CommandLine::addDevice(std::string &target) {
  addValue(
      "--device", "NAME",
      "cpu, cuda (an NVIDIA GPU), hip (an AMD GPU), or cuda:N and hip:N for one of several; default: cpu",
      [&target](const std::string &value) {
        host::DeviceKind kind;
        uint32_t ordinal = 0;
        target = value;
        return host::parseDevice(value, kind, ordinal);
      });
}

void CommandLine::addWeights(const std::string &name, std::string &target) {
  addValue(name, "ema|swa", "averages of --ema or --swa in place of the parameters; default: the parameters",
           [&target](const std::string &value) {
             target = value;
             return host::checkWeightsName(value);
           });
}

void CommandLine::addPositional(const std::string &name, const std::string &help, std::string &target,
                                bool isRequired) {
  command->add_option(name, target, help)->required(isRequired)->type_name("");
}

void CommandLine::addPositionals(const std::string &name, const std::string &help,
                                 std::vector<std::string> &targets) {
  command->add_option(name, targets, help)->required()->type_name("");
}

void CommandLine::setExample(const std::string &text) { command->footer("\nExample:\n  " + text); }

void CommandLine::setAction(std::function<int()> &action, std::function<int()> run) {
  command->callback([&action, run = std::move(run)] { action = run; });
}

int reportError(const std::string &message, int exitCode) {
  std::fflush(stdout);
  std::fprintf(stderr, "ortc: error: %s\n", makePrintable(message).c_str());
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
