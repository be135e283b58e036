//===- Reports.h - what --dump-buffers and --report write -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Manifest.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::driver {

/// A phase and how long it took.
struct PhaseTime {
  std::string name;
  double seconds;
};

/// "train/default": the name that the artifact's entry has.
std::string entryName(plan::ProgramOp program, const CompileOptions &options);

/// The memory plan as CSV: entry, name, region, offset, bytes, and the first and last step that use the buffer, from 0.
/// One line for each piece of memory and name; what no step uses has no line. Text is quoted.
std::string makeBufferTable(mlir::ModuleOp module, const CompileOptions &options);

/// Times of the phases, figures of the entries, and every kernel with its work, as far as there are any yet.
std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<TargetCode> &codes);

/// Writes a file; false with `error` when that fails.
bool writeFile(const std::string &path, const std::string &contents, std::string &error);

} // namespace ortc::driver
