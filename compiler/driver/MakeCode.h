// The phases `fuse`, `place` and `code`, for one family of targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/tuning/TuneCache.h"

namespace ortc::driver {

/// Makes a program run on the targets of a family.
class CodeMaker {
public:
  /// `program` knows its targets. `before`: kernels of the family before it, or null. `cache`: of code, or null. All
  /// arguments must outlive it.
  CodeMaker(const CompileOptions &options, const CompileExtras &extras, const Diagnostics &diagnostics,
            FamilyProgram &program, const kernels::ProgramKernels *before, report::CompileFacts &facts,
            tuning::TuneCache &tuned, backends::KernelCache *cache)
      : options(options), extras(extras), diagnostics(diagnostics), program(program), before(before),
        facts(facts), tuned(tuned), cache(cache) {}

  /// Cuts the program into kernels.
  Status fuse();
  /// Makes the kernels, and places the program's buffers by what they need.
  Status place();
  /// Links kernels and steps, and measures how kernels are best cut where the options ask for it.
  Status code();

private:
  Status placeOutlined();
  Status survey();
  bool compilesAtOnce() const;
  void tellProgress(size_t number) const;
  Status linkAll();
  Status saveTuned();
  Status tuneFor(const backends::Target &target, const backends::TargetCode &code, bool &isFaster);
  /// A failure of a target's, with its name and the model's.
  Status withTarget(const backends::Target &target, const Status &status) const;
  backends::CodeOptions codeOptions(const backends::Target &target) const;

  const CompileOptions &options;
  const CompileExtras &extras;
  const Diagnostics &diagnostics;
  FamilyProgram &program;
  const kernels::ProgramKernels *const before; ///< of the family before this one, or null
  report::CompileFacts &facts;
  tuning::TuneCache &tuned;
  backends::KernelCache *const cache;
  mlir::OwningOpRef<mlir::ModuleOp> outlined; ///< before it was placed, where measuring may place it again
};

} // namespace ortc::driver
