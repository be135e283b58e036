// What a family of machines gives to the compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Targets whose kernels are fused and placed alike are a family: they share a plan. Everything above this folder knows
// families by these interfaces alone. docs/adding-a-family.md has the steps to add one.
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/backends/KernelInfo.h"
#include "compiler/kernels/FusionLimits.h"
#include "compiler/kernels/ProgramKernels.h"
#include "compiler/kernels/TrainingLimits.h"
#include "compiler/options/Numerics.h"
#include "compiler/options/ObjectFormat.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Expected.h"
#include "support/Machine.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ortc::kernels {
struct AttentionForm;
}

namespace ortc::backends {

class KernelCache;

/// How code is made.
struct CodeOptions {
  Numerics numerics = Numerics::Fast;
  bool usesTf32 = false;                     ///< products of f32 numbers are those of numbers rounded to TF32
  unsigned threads = 1;                      ///< of the compiler
  std::optional<KernelChoices> choices = {}; ///< KernelBlocking is complete only with them
  KernelCache *cache = nullptr;              ///< of code that LLVM has made before; null: none
  std::string assembler;                     ///< path of the vendor's, for targets that use it; empty: none
};

/// Bytes of stack that the code of a program takes, without the host's functions that it calls; absent where not known.
struct StackUse {
  std::optional<uint64_t> caller; ///< of the thread that calls the step
  std::optional<uint64_t> worker; ///< of a thread of the pool
};

/// The code of all programs of a module, or of kernels alone, for one target. A family derives a type that it can also
/// load and measure.
struct TargetCode {
  virtual ~TargetCode() = default;

  artifact::Code section;          ///< of the artifact
  std::vector<KernelInfo> kernels; ///< in the order of `kernels::ProgramKernels::names`
  std::vector<StackUse> stack;     ///< in the order of the programs; empty where the family has no stack

  /// An archive of object files for programs that the code is linked into. `symbols`: of the steps, in the order of the
  /// programs. Here: refused.
  virtual Expected<artifact::Bytes> makeArchive(const std::vector<std::string> &symbols,
                                                ObjectFormat format) const {
    return Status::refusal("its code cannot be linked into a program; leave --emit static out");
  }
  /// A module of WebAssembly that needs nothing else: the code, the runtime (`runtime`: an archive of its objects) and
  /// `image`, an artifact without code (artifact::makeStaticImage). Here: refused.
  virtual Expected<artifact::Bytes> makeModule(const artifact::Bytes &image, llvm::StringRef runtime) const {
    return Status::refusal("its code is not for WebAssembly; give --target wasm32, or leave --emit wasm out");
  }
};

/// What a target is asked for with.
struct TargetOptions {
  int64_t workers = 2; ///< threads that kernels are cut for and that scratch is planned for
  Numerics numerics = Numerics::Fast;
  std::optional<bool> forSize = {}; ///< small code or fast code; absent: as the target is mostly wanted
};

/// A kernel under another name, with choices of its own.
struct KernelVariant {
  std::string kernel, name;
  KernelChoices choices;
};

/// What kernels should take, one call on one core, and what that is computed from.
struct KernelEstimates {
  Machine machine;             ///< rates of one core, in f32
  bool isMeasured = false;     ///< on this machine; otherwise by a table
  double callSeconds = 0;      ///< of a call, whatever the kernel
  std::vector<double> seconds; ///< of each kernel
};

/// One machine that code is made for, in one compilation. Functions that fail say why, without naming model or target.
class Target {
public:
  virtual ~Target() = default;

  virtual const std::string &getName() const = 0; ///< as on the command line
  /// Where choices that were measured hold: what they depend on of the machine.
  virtual std::string describe(Numerics numerics) const = 0;
  virtual bool canRunHere() const = 0;
  /// Whether its vendor's assembler can make machine code of what it links (CodeOptions::assembler).
  virtual bool usesAssembler() const { return false; }
  /// Whether it has instructions that multiply numbers of TF32 (CodeOptions::usesTf32).
  virtual bool hasTf32() const { return false; }

  /// Most elements of a head, times the parts of 16 bits of each, that its kernels of attention take; 0: it has none.
  virtual int64_t attentionParts(Numerics) const { return 0; }
  /// Whether it has the kernel of attention that is not larger.
  virtual bool hasAttention(const kernels::AttentionForm &) const { return true; }

  /// Makes every outlined kernel of `module`, and notes two things on its function. `plan.time` is the estimated time
  /// of a call, by a table, so that it is the same everywhere. `plan.scratch` is the scratch that it needs: the most of
  /// all targets that surveyed this module. With `compiles`, the code is made in one go.
  virtual Status survey(mlir::ModuleOp module, const CodeOptions &options, bool compiles) = 0;
  /// The code of the placed programs of `module`, which was surveyed by this target.
  virtual Expected<std::unique_ptr<TargetCode>>
  link(mlir::ModuleOp module, const kernels::ProgramKernels &kernels, const CodeOptions &options) = 0;

  /// For the report. `isDouble`: arithmetic is in f64.
  virtual KernelEstimates estimate(const std::vector<kernels::KernelWork> &works, bool isDouble) const = 0;

  // The rest is asked only where canRunHere(). `code` is of this target.

  /// Seconds of the fastest call of every kernel, on one core, in the order of `kernels.names`; 0 where a kernel cannot
  /// be run alone, or there is no memory for its buffers.
  virtual Expected<std::vector<double>> measure(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                                                const TargetCode &code) const = 0;
  /// Code of the variants alone, without any step; its kernels are in their order.
  virtual Expected<std::unique_ptr<TargetCode>> compileVariants(mlir::ModuleOp module,
                                                                const std::vector<KernelVariant> &variants,
                                                                const CodeOptions &options) const = 0;
  /// Seconds of those variants of one kernel, measured in turns on the buffers of `step`, which calls the kernel.
  virtual Expected<std::vector<double>> timeInTurns(plan::StepOp step, const TargetCode &variants,
                                                    const std::vector<size_t> &numbers) const = 0;
};

/// A family of targets.
class Backend {
public:
  virtual ~Backend() = default;

  virtual llvm::StringRef getName() const = 0;
  /// Names for --target, in order of preference of the loader (most capable last), "native" excluded.
  virtual llvm::ArrayRef<llvm::StringRef> targetNames() const = 0;
  /// What `--target host` stands for.
  virtual llvm::ArrayRef<llvm::StringRef> hostTargets() const { return {}; }
  /// What `--target all` stands for: machines with an operating system.
  virtual llvm::ArrayRef<llvm::StringRef> hostedTargets() const { return {}; }
  /// The target called `name`, one of the names or "native"; null where the family has none.
  virtual std::unique_ptr<Target> findTarget(llvm::StringRef name, const TargetOptions &options) const = 0;
  /// Limits may depend on the numerics: portable ones leave the order of sums as it is.
  virtual kernels::FusionLimits fusionLimits(Numerics numerics) const = 0;
  /// `hasBudget`: whether there is a limit to the transient region. They do not depend on its value: the least that a
  /// refusal names would not be enough for other limits.
  virtual kernels::TrainingLimits trainingLimits(bool hasBudget) const {
    (void)hasBudget;
    return {};
  }
};

} // namespace ortc::backends
