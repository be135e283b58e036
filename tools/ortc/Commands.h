// The commands of ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "tools/ortc/CommandLine.h"

namespace ortc {
struct CompileOptions;
}

namespace ortc::tool {

/// Flags that `train`, `plan` and `check` share: what is compiled and what its loss is; what is trained and
/// how it runs.
void addModelFlags(CommandLine &line, CompileOptions &options);
void addGradientFlags(CommandLine &line, CompileOptions &options);
/// The facts of target flags beside the options. `isFirstTarget` is true at first, `memoryUnit` is that of the
/// memory budget.
struct TargetFlags {
  bool &isFirstTarget;
  std::string &memoryUnit;
};

/// Flags that `train` and `plan` share: how it is trained; what the code is for.
void addTrainingFlags(CommandLine &line, CompileOptions &options);
void addTargetFlags(CommandLine &line, CompileOptions &options, TargetFlags flags);
/// --kernel-cache, which ORTC_KERNEL_CACHE gives where the flag does not.
void addKernelCacheFlag(CommandLine &line, CompileOptions &options);

void addTrainCommand(Tool &tool);
void addPlanCommand(Tool &tool);
void addCheckCommand(Tool &tool);
void addUpdateCommand(Tool &tool);
void addOpsCommand(Tool &tool);
void addRunCommand(Tool &tool);
void addReportCommand(Tool &tool);
void addEvalCommand(Tool &tool);
void addPredictCommand(Tool &tool);
void addGradientsCommand(Tool &tool);
void addExportCommand(Tool &tool);
void addInspectCommand(Tool &tool);
void addDeltaCommand(Tool &tool);
void addMergeCommand(Tool &tool);
void addSignCommand(Tool &tool);
void addVerifyCommand(Tool &tool);

/// ortc flags, completion, help: commands about commands, so they come last. `about` is what ortc does.
void addFlagsCommand(Tool &tool, const std::string &about);
void addCompletionCommand(Tool &tool);
void addHelpCommand(Tool &tool, const std::string &about);
/// Prints help: of the tool, of the command `name`, or of one of its flags; "all" are all flags. Returns the exit
/// status.
int explain(const Tool &tool, const std::string &about, const std::string &name, const std::string &flag);

} // namespace ortc::tool
