// What --report writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/report/Manifest.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::report {

/// A phase and how long it took.
struct PhaseTime {
  std::string name;
  double seconds;
};

/// What the kernels of a target should take and do take, on one core, in the order of the family's kernels.
struct KernelCosts {
  backends::KernelEstimates estimates;
  std::vector<double>
      times; ///< in seconds; 0: not measured. Empty where the target cannot run on this machine
};

/// Estimates, and measures what runs here, at the rates of this machine then for "native"; other targets are
/// estimated with the rates of the table for their level, so that the same model gives the same estimates
/// everywhere.
Expected<KernelCosts> findCosts(mlir::ModuleOp program, const kernels::ProgramKernels &kernels,
                                const backends::Target &target, const backends::TargetCode &code,
                                const CompileOptions &options);

/// Times of the phases, figures of the entries, and every kernel with its work and its costs, as far as there
/// are any yet. `costs` are those of all codes, family by family.
std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<KernelCosts> &costs);

} // namespace ortc::report
