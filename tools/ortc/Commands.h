// The commands of ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "tools/ortc/CommandLine.h"

namespace ortc {
struct CompileOptions;
}

namespace ortc::tool {

/// What the command line asks for; set while it is parsed, run after it. Returns the exit status.
using Action = std::function<int()>;

/// What --data may be.
constexpr const char kDataHelp[] = "npz, safetensors, npy, CSV, tar of npy, or MNIST-style IDX images "
                                   "(IMAGES,LABELS); several files, or a pattern "
                                   "as 'shard-*.npz', are shards; tokens:FILES?seq=N are files of tokens";

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

void addTrainCommand(CLI::App &app, Action &action);
void addPlanCommand(CLI::App &app, Action &action);
void addCheckCommand(CLI::App &app, Action &action);
void addOpsCommand(CLI::App &app, Action &action);
void addRunCommand(CLI::App &app, Action &action);
void addReportCommand(CLI::App &app, Action &action);
void addEvalCommand(CLI::App &app, Action &action);
void addPredictCommand(CLI::App &app, Action &action);
void addGradientsCommand(CLI::App &app, Action &action);
void addExportCommand(CLI::App &app, Action &action);
void addInspectCommand(CLI::App &app, Action &action);
void addDeltaCommand(CLI::App &app, Action &action);
void addMergeCommand(CLI::App &app, Action &action);
void addSignCommand(CLI::App &app, Action &action);
void addVerifyCommand(CLI::App &app, Action &action);

} // namespace ortc::tool
