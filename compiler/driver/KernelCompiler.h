// Kernels and steps to a code blob.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/object/Blob.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ortc::driver {

/// Bytes of stack that the code of a program takes, without the host's functions that it calls; absent where not known.
struct StackUse {
  std::optional<uint64_t> caller; ///< of the thread that calls the step
  std::optional<uint64_t> worker; ///< of a thread of the pool
};

/// The code of all programs of a module for one target.
struct TargetCode {
  cpu::Target target;
  cpu::CodeBlob blob;
  std::vector<cpu::KernelInfo> kernels; ///< in the order of `ProgramKernels::names`
  std::vector<StackUse> stack;          ///< in the order of the programs
};

/// What is the same for all targets: the kernels that programs use, in order of first use, and the tensors that index
/// checks name.
struct ProgramKernels {
  std::vector<std::string> names;
  std::map<std::string, size_t> numbers; ///< in `names`
  std::vector<std::string> checkNames;
};
ProgramKernels findKernels(mlir::ModuleOp module);

/// How often the steps in `scope`, a program or a module, call each kernel; in the order of `kernels.names`.
std::vector<int64_t> countCalls(mlir::Operation *scope, const ProgramKernels &kernels);

/// Whether a kernel is worth more than one thread: its step hands it to the pool.
bool isParallel(const cpu::KernelInfo &info, const cpu::Target &target);

/// Scratch of one call: of all `target.workers` where it is handed to the pool, otherwise of the thread that calls.
int64_t scratchBytes(const cpu::KernelInfo &info, const cpu::Target &target);

/// The number of an entry's role ("train", ...) in blobs and entry tables: enum ortc_entry_role.
uint32_t entryRole(llvm::StringRef role);

/// How many processors this process may run on: fewer than the machine has under taskset or in a container.
unsigned countProcessors();

/// How kernels are compiled.
struct KernelOptions {
  cpu::Numerics numerics = cpu::Numerics::Fast;
  unsigned threads = 1;                           ///< of the compiler
  std::optional<cpu::KernelChoices> choices = {}; ///< as in GeneratorOptions
};

/// Generates and compiles every kernel, each in a module of its own, then the step functions, and links them. The same
/// bytes whatever the number of threads. `error` says what failed: kernels must keep to the scratch that
/// their functions say (annotateKernels).
bool compileKernels(mlir::ModuleOp module, const ProgramKernels &kernels, const cpu::Target &target,
                    const KernelOptions &options, TargetCode &code, std::string &error);

/// Generates kernels without compiling them, for what is known of them then: their counts and their
/// workspaces. `infos` are in the order of `names`.
bool surveyKernels(mlir::ModuleOp module, const std::vector<std::string> &names, const cpu::Target &target,
                   const KernelOptions &options, std::vector<cpu::KernelInfo> &infos, std::string &error);

/// A kernel under another name, with choices of its own.
struct KernelVariant {
  std::string kernel, name;
  cpu::KernelChoices choices;
};

/// Generates, compiles and links variants of kernels, without any step function. `infos` are in their order.
bool compileVariants(mlir::ModuleOp module, const std::vector<KernelVariant> &variants,
                     const cpu::Target &target, const KernelOptions &options,
                     std::vector<cpu::KernelInfo> &infos, cpu::CodeBlob &blob, std::string &error);

} // namespace ortc::driver
