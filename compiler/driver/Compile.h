// From a model file to an artifact in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Registry.h"
#include "compiler/driver/Compiled.h"
#include "compiler/options/CompileOptions.h"
#include "compiler/options/TuneOptions.h"
#include "compiler/passes/train/UpdateProgram.h"
#include "support/Expected.h"

#include <functional>

namespace ortc::driver {

/// What a caller may want besides the artifact, and what it may want to be told. A Status that is not fine ends the
/// compilation.
struct CompileExtras {
  TuneOptions tuning;       ///< files of it are read, and written as soon as something was measured
  bool keepsParts = false;  ///< Compiled::parts
  bool budgetCurve = false; ///< plans also tell what smaller memory budgets would cost
  std::string memoryUnit;   ///< that the memory budget was given in, as in support/Text.h
  /// What begins: "fusing kernels".
  std::function<void(const std::string &what)> progress = [](const std::string &) {};
  /// The model was read; its external data, too, is known.
  std::function<Status(const frontend::Model &model)> afterReading = [](const frontend::Model &) {
    return Status();
  };
  /// A phase has ended, for each family of targets as soon as they have programs of their own. `place` may end twice
  /// where kernels are measured. `family`: its name where there are several, else empty.
  std::function<Status(const char *phase, const std::string &family, mlir::ModuleOp ir)> afterPhase =
      [](const char *, const std::string &, mlir::ModuleOp) { return Status(); };
  std::vector<const backends::Backend *> families = backends::listBackends(); ///< that targets may be of
};

/// Whether the options name phases and targets that there are, and go with each other. compile() refuses the same;
/// callers that have more to check ask first.
Status checkRequest(const CompileOptions &options, const CompileExtras &extras);

/// Compiles as the options say: up to the phase `compileTo`, or else to an artifact. Reads the model and files that it
/// names. Prints nothing and writes no file but the caches of `tuning` and of kernels; `output`, `report`, `dumpIr` and
/// `dumpBuffers` are the caller's. Fails with the exit status of `ortc train`: 2 for a model or options that are
/// refused, 1 where files fail. May be called several times and from several threads at once.
Expected<Compiled> compile(const CompileOptions &options, const CompileExtras &extras = {});

/// Compiles the update of `options.optimizer` for tensors that a host owns, as train::buildUpdateProgram() has it: one
/// entry for prediction in a binding for each piece ("n16", ...), or for the one shape of the form. No model is read.
/// Only targets, workers, numerics, the kernel cache and `compileTo` of the other options count; fails as compile()
/// does.
Expected<Compiled> compileUpdate(const CompileOptions &options, const train::UpdateForm &form,
                                 const CompileExtras &extras = {});

} // namespace ortc::driver
