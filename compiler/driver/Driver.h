// From a model file to a written artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "compiler/options/TuneOptions.h"

#include <functional>

namespace mlir {
class ModuleOp;
}

namespace ortc::driver {

/// Compiles as `options` and `tuning` say and writes the artifact's folder whole or not at all. Prints a
/// summary on stdout and messages on stderr. Returns the exit status of `ortc train`: 0 done, 1 a file could
/// not be written, 2 the input was refused.
int compile(const CompileOptions &options, const TuneOptions &tuning = {});

/// The same without tuning; once the artifact is written, `then` gets the program as phase `differentiate`
/// left it (forward, loss and backward functions), and what it returns is the exit status.
int compile(const CompileOptions &options, const std::function<int(mlir::ModuleOp parts)> &then);

/// What `ortc plan` is asked for, beside the options of the compilation.
struct PlanOptions {
  std::string page;          ///< HTML file; empty: none
  bool everyEntry = false;   ///< details of every entry, not of the first only
  bool trainChoices = false; ///< also plans with fewer tensors trained, for a table of what that saves
  bool isTrial = false;      ///< one of those: nothing is printed or written
};

/// Plans the memory of what `options` would compile, without generating code for it, prints the plan, and writes what
/// `planning` and the options' `report` (as plan.json) and `dumpBuffers` say. Returns the exit status of `ortc plan`.
int plan(const CompileOptions &options, const PlanOptions &planning);

} // namespace ortc::driver
