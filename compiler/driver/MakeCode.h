// The phases `place` and `code`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/tuning/TuneCache.h"

namespace ortc::driver {

/// Makes a fused program run on the targets of the options.
class CodeMaker {
public:
  CodeMaker(const CompileOptions &options, const CompileExtras &extras, const Diagnostics &diagnostics,
            Compiled &compiled)
      : options(options), extras(extras), diagnostics(diagnostics), compiled(compiled) {}

  /// Finds the targets, and reads the choices that are known: before any work is done.
  Status prepare();
  /// Makes the kernels, and places the program's buffers by what they need.
  Status place();
  /// Links kernels and steps, and measures how kernels are best cut where the options ask for it.
  Status code();

private:
  Status placeOutlined();
  Status survey();
  Status linkAll();
  Status saveTuned();
  Status tuneFor(const cpu::TargetCode &code, bool &isFaster);
  Status refuse(const cpu::Target &target, const std::string &why) const;
  cpu::KernelOptions kernelOptions(const cpu::Target &target) const;

  const CompileOptions &options;
  const CompileExtras &extras;
  const Diagnostics &diagnostics;
  Compiled &compiled;
  std::vector<cpu::Target> targets;
  std::vector<cpu::MadeKernels> made; ///< for each target, from the survey
  tuning::TuneCache tuned;
  mlir::OwningOpRef<mlir::ModuleOp> outlined; ///< before it was placed, where measuring may place it again
};

} // namespace ortc::driver
