// Kernels and steps to a code blob.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
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

/// Bytes of stack that the code of a program takes, without the host's functions that it calls; absent where not known.
struct StackUse {
  std::optional<uint64_t> caller; ///< of the thread that calls the step
  std::optional<uint64_t> worker; ///< of a thread of the pool
};

/// The code of all programs of a module for one target.
struct TargetCode {
  Target target;
  CodeBlob blob;
  std::vector<KernelInfo> kernels; ///< in the order of `kernels::ProgramKernels::names`
  std::vector<StackUse> stack;     ///< in the order of the programs
};

/// Whether a kernel is worth more than one thread: its step hands it to the pool.
bool isParallel(const KernelInfo &info, const Target &target);

/// Scratch of one call: of all `target.workers` where it is handed to the pool, otherwise of the thread that calls.
int64_t scratchBytes(const KernelInfo &info, const Target &target);

/// The artifact's section of that code.
artifact::Code makeSection(const TargetCode &code);

/// How kernels are compiled.
struct KernelOptions {
  Numerics numerics = Numerics::Fast;
  unsigned threads = 1;                      ///< of the compiler
  std::optional<KernelChoices> choices = {}; ///< as in GeneratorOptions
};

/// A kernel that was generated: what is known of it then, and its object where it was compiled, too.
struct MadeKernel {
  KernelInfo info;
  std::optional<Object> object;
};
using MadeKernels = std::map<std::string, MadeKernel>; ///< by name

/// Compiles every kernel that `made` has no object of, each in a module of its own, then the step functions, and links
/// them. Takes the objects of `made`. The same bytes whatever the number of threads. `error` says what failed:
/// kernels must keep to the scratch that their functions say (annotateKernels).
bool compileKernels(mlir::ModuleOp module, const kernels::ProgramKernels &kernels, const Target &target,
                    const KernelOptions &options, MadeKernels &made, TargetCode &code, std::string &error);

/// Generates kernels, for what is known of them then: their counts and their workspaces. Compiles them in one go where
/// `compiles`, but for checks of indices, whose code has numbers that only the placed program gives.
bool makeKernels(mlir::ModuleOp module, const std::vector<std::string> &names, const Target &target,
                 const KernelOptions &options, bool compiles, MadeKernels &made, std::string &error);

/// A kernel under another name, with choices of its own.
struct KernelVariant {
  std::string kernel, name;
  KernelChoices choices;
};

/// Generates, compiles and links variants of kernels, without any step function. `infos` are in their order.
bool compileVariants(mlir::ModuleOp module, const std::vector<KernelVariant> &variants, const Target &target,
                     const KernelOptions &options, std::vector<KernelInfo> &infos, CodeBlob &blob,
                     std::string &error);

} // namespace ortc::cpu
