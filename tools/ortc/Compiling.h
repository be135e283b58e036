// The commands that compile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "compiler/options/TuneOptions.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Status.h"

#include <optional>

namespace ortc::tool {

/// What --write-config writes, and where; an empty path: nowhere.
struct RecipeFile {
  std::string path, text;
};

/// `ortc train`: compiles as the options say and writes the artifact's folder, whole or not at all, and the reports.
/// Prints a summary on stdout, notes and warnings on stderr.
/// `memoryUnit`: that of the memory budget, as in support/Text.h.
Status train(const CompileOptions &options, const TuneOptions &tuning, const std::string &memoryUnit,
             const RecipeFile &recipe);

/// What `ortc plan` is asked for, beside the options of the compilation.
struct PlanOptions {
  std::string page;        ///< HTML file; empty: none
  bool everyEntry = false; ///< details of every entry, not of the first only
  std::optional<uint64_t>
      fit; ///< also plans sets of tensors and channels, and marks those of at most so many bytes
  std::string fitUnit, memoryUnit; ///< that this and the memory budget were given in, as in support/Text.h
  bool trainChoices = false;       ///< also plans with fewer tensors trained, for a table of what that saves
};

/// `ortc plan`: plans the memory of what `options` would compile, without generating code for it, prints the plan, and
/// writes what `planning` and the options' `report` (as plan.json) and `dumpBuffers` say.
Status plan(const CompileOptions &options, const PlanOptions &planning);

/// Writes the IR after a phase into the folder of --dump-ir, if there is one: a file for each family of targets where
/// there are several.
Status dumpIr(const std::string &folder, const char *phase, const std::string &family, mlir::ModuleOp ir);

/// Prints notes and warnings on stderr, a line each.
void printNotes(const std::vector<std::string> &notes, const std::vector<std::string> &warnings);

} // namespace ortc::tool
