//===- Reports.h - what --dump-buffers and --report write -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/cost/CostModel.h"
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

/// What the kernels of a target should take and do take, on one core, in the order of the artifact's kernels.
struct KernelCosts {
  codegen::CostModel model;
  std::vector<double> estimates; ///< in seconds
  std::vector<double>
      times; ///< in seconds; 0: not measured. Empty where the target cannot run on this machine
};

/// Estimates, and measures what runs here, at the rates of this machine then for "native"; other targets are estimated with
/// the rates of the table for their level, so that the same model gives the same estimates everywhere.
bool findCosts(mlir::ModuleOp module, const ProgramKernels &kernels, const TargetCode &code,
               const CompileOptions &options, KernelCosts &costs, std::string &error);

/// Times of the phases, figures of the entries, and every kernel with its work and its costs, as far as there are any yet.
std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<TargetCode> &codes, const std::vector<KernelCosts> &costs);

/// Writes a file; false with `error` when that fails.
bool writeFile(const std::string &path, const std::string &contents, std::string &error);

} // namespace ortc::driver
