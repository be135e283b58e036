// The command line of ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "host/data/file_guard.h"
#include "host/signals.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/MissingMemory.h"

#include <new>

using namespace ortc;

/// The command that was given, or the tool itself.
static const CLI::App &findCommand(const CLI::App &app) {
  for (const CLI::App *command : app.get_subcommands())
    return *command;
  return app;
}

#ifdef ORTC_HAS_COMPILER
static constexpr const char *kAbout = "ortc compiles ONNX models into training steps and runs them";
static bool isOfCompiler(const std::string &) { return false; } // they are here
#else
static constexpr const char *kAbout =
    "ortc runs training steps; this one was built without the compiler that makes them";
static bool isOfCompiler(const std::string &command) {
  return command == "train" || command == "plan" || command == "check" || command == "ops";
}
#endif

/// Says which argument nobody knows; "" when all are known.
static std::string describeExtras(const CLI::App &app) {
  const CLI::App &command = findCommand(app);
  bool isTool = &command == &app;
  std::string name = isTool ? "ortc" : "ortc " + command.get_name();
  for (const std::string &argument : command.remaining())
    if (isTool && isOfCompiler(argument))
      return argument + " needs the compiler, which this ortc was built without";
    else
      return (argument.starts_with("-") ? "unknown flag '"
              : isTool                  ? "unknown command '"
                                        : "unexpected argument '") +
             argument + "'; " + name + " --help lists what there is";
  return "";
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

static int run(int argc, char **argv) {
  CLI::App app{kAbout, "ortc"};
  app.set_version_flag("--version", "ortc " ORTC_VERSION);
  app.allow_extras();
  tool::Action action;
#ifdef ORTC_HAS_COMPILER
  tool::addTrainCommand(app, action);
  tool::addPlanCommand(app, action);
  tool::addCheckCommand(app, action);
  tool::addOpsCommand(app, action);
  for (CLI::App *command : app.get_subcommands({}))
    command->parse_complete_callback(tool::endOnFailedAllocation);
#endif
  tool::addRunCommand(app, action);
  tool::addReportCommand(app, action);
  tool::addEvalCommand(app, action);
  tool::addPredictCommand(app, action);
  tool::addGradientsCommand(app, action);
  tool::addExportCommand(app, action);
  tool::addInspectCommand(app, action);
  tool::addDeltaCommand(app, action);
  tool::addMergeCommand(app, action);
  tool::addSignCommand(app, action);
  tool::addVerifyCommand(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) { // --help, --version
    return app.exit(success);
  } catch (const CLI::ArgumentMismatch
               &error) { // "--flag: 1 required TYPE missing", "flag was given a disallowed .."
    std::string text = error.what();
    if (size_t end = text.find(" was given a disallowed flag override"); end != std::string::npos)
      return tool::reportError("--" + text.substr(text.find_first_not_of('-'), end) + " takes no value", 2);
    return tool::reportError(text.substr(0, text.find(':')) + " needs a value", 2);
  } catch (const CLI::Error &error) {
    std::string extras = describeExtras(app);
    return tool::reportError(extras.empty() ? describe(error) : extras, 2);
  }
  if (std::string extras = describeExtras(app); !extras.empty())
    return tool::reportError(extras, 2);
  if (!action) {
    std::fputs(app.help().c_str(), stderr);
    return tool::reportError("no command is given", 2);
  }
  try {
    return action();
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
  host::catchSignals(canSave ? host::OnSignal::Remember : host::OnSignal::End);
  holdStreams();
  host::guardMappedFiles("ortc");
  tool::endOnMissingMemory();
  int code = run(argc, argv);
  if (code == 0 && host::interruption) // as a shell counts a process that ended by the signal
    return 128 + host::interruption;
  bool isLost = std::fflush(stdout) != 0;
  std::string reason = isLost ? std::string(": ") + std::strerror(errno) : "";
  return code == 0 && (isLost || std::ferror(stdout))
             ? tool::reportError("standard output cannot be written" + reason, 1)
             : code;
}
