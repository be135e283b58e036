// The command line of ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "engine/signals.h"
#include "engine/stack.h"
#include "support/FileGuard.h"
#include "support/OutputPaths.h"
#include "tools/ortc/CommandLine.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/MissingMemory.h"
#include "tools/ortc/flags/Help.h"

#include <new>

using namespace ortc;

/// The command that was given, or the tool itself.
static const CLI::App &findCommand(const CLI::App &app) {
  for (const CLI::App *command : app.get_subcommands())
    return *command;
  return app;
}

#ifdef ORTC_HAS_COMPILER
static constexpr const char *kAbout = "Compile ONNX models into training steps, and run them";
static bool isOfCompiler(const std::string &) { return false; } // they are here
#else
static constexpr const char *kAbout =
    "Run training steps; this ortc was built without the compiler that makes them";
static bool isOfCompiler(const std::string &command) {
  return tool::findCommand(command) != nullptr; // the table has all commands, this build the others
}
#endif

/// The flags of a command, "--flag", that its help shows.
static std::vector<std::string> listFlags(const CLI::App &command) {
  std::vector<std::string> flags;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      if (!option->get_group().empty())
        flags.push_back("--" + name);
  return flags;
}

static std::vector<std::string> listCommands(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands({}))
    names.push_back(command->get_name());
  return names;
}

/// The flag before an argument, with only other arguments between: "" where none is, or where it takes no value. A
/// shell makes such arguments of a pattern that is not quoted.
static std::string findFlagBefore(const std::string &argument, const CLI::App &command,
                                  const std::vector<std::string> &line) {
  auto at = std::find(line.begin(), line.end(), argument), value = at;
  while (value != line.begin() && !value[-1].starts_with("-"))
    --value;
  if (at == line.end() || value == line.begin() || at == value)
    return "";
  const std::string &given = value[-1];
  const tool::FlagRow *flag = tool::findCommand(command.get_name())->findGiven(given);
  bool takesNext = flag && flag->type != tool::FlagType::Switch &&
                   (given == "--" + std::string(flag->name) || given.size() == 2);
  return takesNext ? given : "";
}

/// Says which argument nobody knows; "" when all are known.
static std::string describeExtras(const CLI::App &app, const std::vector<std::string> &line) {
  const CLI::App &command = findCommand(app);
  bool isTool = &command == &app;
  std::string name = isTool ? "ortc" : "ortc " + command.get_name();
  for (const std::string &argument : command.remaining()) {
    if (isTool && isOfCompiler(argument))
      return argument + " needs the compiler, which this ortc was built without";
    if (argument.starts_with("-")) {
      const std::string flag = argument.substr(0, argument.find('='));
      return tool::describeUnknown("flag", flag, listFlags(command), name);
    }
    if (isTool)
      return tool::describeUnknown("command", argument, listCommands(app), name);
    if (const std::string flag = findFlagBefore(argument, command, line); !flag.empty())
      return "unexpected argument '" + argument + "': " + flag +
             " takes one value; quotes keep a shell from making several of a pattern: " + flag + " '*.npz'";
    return "unexpected argument '" + argument + "'; " + name + " --help lists what there is";
  }
  if (!isTool) // in front of the command, or after "--"
    for (const std::string &argument : app.remaining())
      if (argument != "--")
        return "unexpected argument '" + argument + "'; flags stand after the command; " + name +
               " --help lists what there is";
  return "";
}

/// `ortc help [COMMAND [FLAG]]`, `ortc COMMAND --help-FLAG` and `--help-all`, answered before the line is parsed: a
/// command's name there is the command.
static std::optional<int> answerHelp(const tool::Tool &tool, const std::vector<std::string> &line) {
  if (line.empty())
    return std::nullopt;
  if (line[0] == "help" && line.size() > 3 && !line[1].starts_with("-"))
    return tool::reportError("unexpected argument '" + line[3] + "'; ortc help takes a command and a flag",
                             2);
  if (line[0] == "help" && (line.size() < 2 || !line[1].starts_with("-")))
    return tool::explain(tool, kAbout, line.size() > 1 ? line[1] : "", line.size() > 2 ? line[2] : "");
  constexpr std::string_view kPrefix = "--help-";
  for (const std::string &argument : line)
    if (argument.starts_with(kPrefix) && tool::findCommand(line[0]))
      return tool::explain(tool, kAbout, line[0], argument.substr(kPrefix.size()));
  return std::nullopt;
}

/// CLI11's messages begin with a capital letter or a flag.
static std::string describe(const CLI::Error &error) {
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
    text.pop_back();
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) &&
      std::islower(static_cast<unsigned char>(text[1])))
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

/// A message that begins with "--flag: " of the flag that was read last, and where that stands in the recipe.
static std::string locate(const tool::Tool &tool, const tool::Recipe &recipe, const std::string &message) {
  if (!message.starts_with("--"))
    return message;
  const std::string flag = message.substr(2, message.find(':') - 2);
  const auto number = std::count_if(tool.given.begin(), tool.given.end(),
                                    [&](const tool::GivenFlag &each) { return flag == each.row->name; });
  return recipe.locate(flag, static_cast<size_t>(number)) + message;
}

/// The file of "onnx:FILE:KEY=VALUE,..." (an optimizer) or "NAME=onnx:FILE@OUTPUT" (a loss); "" for other values.
static std::string findFunctionFile(const tool::FlagRow &row, const std::string &value) {
  constexpr std::string_view kPrefix = "onnx:";
  const bool isLosses = row.type == tool::FlagType::Losses;
  const size_t begin = isLosses && !value.starts_with(kPrefix) ? value.find('=') + 1 : 0;
  if ((!isLosses && row.type != tool::FlagType::Spec) || value.compare(begin, kPrefix.size(), kPrefix) != 0)
    return "";
  std::string file = value.substr(begin + kPrefix.size());
  if (isLosses)
    file = file.substr(0, file.rfind('@'));
  for (size_t keys; (keys = file.rfind(':')) != file.npos && file.find('=', keys) != file.npos;)
    file.resize(keys);
  return file;
}

/// Refuses outputs that are the recipe, or a file that a value names beside other things: commands know of their other
/// inputs.
static Status checkInputs(const tool::Tool &tool, const tool::Recipe &recipe) {
  std::vector<NamedFile> inputs{{"--config", recipe.file}};
  for (const auto &[row, value, _] : tool.given) {
    const std::string flag = "--" + std::string(row->name);
    if (const std::string file = findFunctionFile(*row, value); !file.empty())
      inputs.push_back({flag, file});
    if (row->type == tool::FlagType::Pattern && value.starts_with("@"))
      inputs.push_back({flag, value.substr(1)});
    else if (flag == "--mask" || flag == "--teacher")
      inputs.push_back({flag, value.substr(0, value.find(':'))});
  }
  for (const auto &[row, value, _] : tool.given)
    if (row->writes)
      ORTC_TRY(checkOutputs(inputs, {{"--" + std::string(row->name), value}}));
  return Status();
}

/// In the order of help.
static void addCommands(tool::Tool &tool) {
#ifdef ORTC_HAS_COMPILER
  tool::addTrainCommand(tool);
  tool::addPlanCommand(tool);
  tool::addCheckCommand(tool);
  tool::addUpdateCommand(tool);
  tool::addOpsCommand(tool);
  for (CLI::App *command : tool.app.get_subcommands({}))
    command->parse_complete_callback(tool::endOnFailedAllocation);
#endif
  tool::addRunCommand(tool);
  tool::addReportCommand(tool);
  tool::addEvalCommand(tool);
  tool::addPredictCommand(tool);
  tool::addGradientsCommand(tool);
  tool::addExportCommand(tool);
  tool::addInspectCommand(tool);
  tool::addDeltaCommand(tool);
  tool::addMergeCommand(tool);
  tool::addSignCommand(tool);
  tool::addVerifyCommand(tool);
  tool::addFlagsCommand(tool, kAbout);
  tool::addCompletionCommand(tool);
  tool::addHelpCommand(tool, kAbout);
}

static int run(int argc, char **argv) {
  CLI::App app{kAbout, "ortc"};
  app.set_version_flag("--version", "ortc " ORTC_VERSION);
  app.allow_extras();
  app.require_subcommand(0, 1); // an argument may be called like a command
  tool::Tool tool(app, static_cast<size_t>(argc));
  app.formatter_fn([&tool](const CLI::App *, const std::string &, CLI::AppFormatMode) {
    return tool::describeTool(kAbout, tool.commands);
  });
  std::vector<std::string> line(argv + std::min(argc, 1), argv + argc);
  addCommands(tool);
  if (std::optional<int> answered = answerHelp(tool, line))
    return *answered;
  tool::Recipe recipe;
  const bool asksHelp = std::any_of(line.begin(), line.end(),
                                    [](const std::string &each) { return each == "--help" || each == "-h"; });
  if (const tool::CommandRow *command = line.empty() || asksHelp ? nullptr : tool::findCommand(line[0])) {
    std::vector<std::string> arguments(line.begin() + 1, line.end());
    if (Status status = tool::addRecipe(*command, arguments, recipe); !status.isOk())
      return tool::finish(status);
    line.resize(1);
    line.insert(line.end(), arguments.begin(), arguments.end());
  }
  try {
    app.parse(std::vector<std::string>(line.rbegin(), line.rend())); // as CLI11 takes them
  } catch (const CLI::Success &success) {                            // --help, --version
    return app.exit(success);
  } catch (const CLI::ArgumentMismatch
               &error) { // "--flag: 1 required TYPE missing", "flag was given a disallowed .."
    std::string text = error.what();
    if (size_t end = text.find(" was given a disallowed flag override"); end != std::string::npos)
      return tool::reportError("--" + text.substr(text.find_first_not_of('-'), end) + " takes no value", 2);
    return tool::reportError(text.substr(0, text.find(':')) + " needs a value", 2);
  } catch (const CLI::Error &error) {
    std::string extras = describeExtras(app, line);
    return tool::reportError(extras.empty() ? locate(tool, recipe, describe(error)) : extras, 2);
  }
  if (std::string extras = describeExtras(app, line); !extras.empty())
    return tool::reportError(extras, 2);
  if (!tool.action) {
    std::fputs(app.help().c_str(), stderr);
    return tool::reportError("no command is given", 2);
  }
  if (Status status = checkInputs(tool, recipe); !status.isOk())
    return tool::finish(status);
  try {
    return tool.action();
  } catch (const std::bad_alloc &) {
    return tool::reportError("out of memory", 1);
  }
}

/// A file that is opened must not get the number of a stream that the caller closed: what is printed would go
/// there. Writing to what takes the number instead fails, as it does to a closed one.
static void holdStreams() {
  int file = -1;
  do
    file = open("/dev/null", O_RDONLY);
  while (file >= 0 && file <= STDERR_FILENO);
  close(file);
}

/// What a command prints is its result: to have lost it is a failure. Signals come before everything else:
/// there is none that finds `run` without a way to save.
int main(int argc, char **argv) {
  bool canSave = argc > 1 && std::strcmp(argv[1], "run") == 0;
  engine::catchSignals(canSave ? engine::OnSignal::Remember : engine::OnSignal::End);
  holdStreams();
  guardMappedFiles("ortc");
  tool::endOnMissingMemory();
  int code = engine::runWithStack([&] { return run(argc, argv); },
                                  [](const std::string &reason) { return tool::reportError(reason, 1); });
  if (code == 0 && engine::interruption) // as a shell counts a process that ended by the signal
    return 128 + engine::interruption;
  bool isLost = std::fflush(stdout) != 0;
  std::string reason = isLost ? std::string(": ") + std::strerror(errno) : "";
  return code == 0 && (isLost || std::ferror(stdout))
             ? tool::reportError("standard output cannot be written" + reason, 1)
             : code;
}
