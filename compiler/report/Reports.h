// What --report writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/cost/CostModel.h"
#include "compiler/report/Manifest.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::report {

/// A phase and how long it took.
struct PhaseTime {
  std::string name;
  double seconds;
};

/// What the kernels of a target should take and do take, on one core, in the order of the artifact's kernels.
struct KernelCosts {
  cpu::CostModel model;
  std::vector<double> estimates; ///< in seconds
  std::vector<double>
      times; ///< in seconds; 0: not measured. Empty where the target cannot run on this machine
};

/// Estimates, and measures what runs here, at the rates of this machine then for "native"; other targets are
/// estimated with the rates of the table for their level, so that the same model gives the same estimates
/// everywhere.
bool findCosts(mlir::ModuleOp module, const kernels::ProgramKernels &kernels, const cpu::TargetCode &code,
               const CompileOptions &options, KernelCosts &costs, std::string &error);

/// Times of the phases, figures of the entries, and every kernel with its work and its costs, as far as there
/// are any yet.
std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<cpu::TargetCode> &codes, const std::vector<KernelCosts> &costs);

} // namespace ortc::report
