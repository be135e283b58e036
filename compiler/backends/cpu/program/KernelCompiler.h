// Kernels and steps to a code blob.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/object/Blob.h"
#include "compiler/kernels/ProgramKernels.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ortc::cpu {

using backends::CodeOptions;
using backends::KernelVariant;
using backends::StackUse;

/// The code of a program, or of kernels alone, before it is an artifact's section.
struct ProgramCode : backends::TargetCode {
  CodeBlob blob;
  Isa isa; ///< of the target
  /// Where code is a module: what it was linked of, steps last, and the steps' symbols, in the order of the programs.
  std::vector<Object> objects;
  std::vector<std::string> steps;

  Expected<artifact::Bytes> makeArchive(const std::vector<std::string> &symbols,
                                        ObjectFormat format) const override;
  Expected<artifact::Bytes> makeModule(const artifact::Bytes &image, llvm::StringRef runtime) const override;
};

/// Scratch of one call: of all `target.workers` where it is handed to the pool, otherwise of the thread that calls.
int64_t scratchBytes(const KernelInfo &info, const Target &target);

/// A kernel that was generated: what is known of it then, and its object where it was compiled, too.
struct MadeKernel {
  KernelInfo info;
  std::optional<Object> object;
};
using MadeKernels = std::map<std::string, MadeKernel>; ///< by name

/// Compiles every kernel that `made` has no object of, each in a module of its own, then the step functions, and links
/// them. Takes the objects of `made`. The same bytes whatever the number of threads. Fails where a kernel does not keep
/// to the scratch that its function says (annotateKernels).
Expected<ProgramCode> compileKernels(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                                     const Target &target, const CodeOptions &options, MadeKernels &made);

/// Generates kernels, for what is known of them then: their counts and their workspaces. Compiles them in one go where
/// `compiles`, but for checks of indices, whose code has numbers that only the placed program gives.
Status makeKernels(mlir::ModuleOp module, const std::vector<std::string> &names, const Target &target,
                   const CodeOptions &options, bool compiles, MadeKernels &made);

/// Generates, compiles and links variants of kernels, without any step function. The kernels of the code are in their
/// order.
Expected<ProgramCode> compileVariants(mlir::ModuleOp module, const std::vector<KernelVariant> &variants,
                                      const Target &target, const CodeOptions &options);

} // namespace ortc::cpu
