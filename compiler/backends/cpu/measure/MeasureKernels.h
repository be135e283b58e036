// How long kernels take, here.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/object/BlobLoader.h"
#include "compiler/backends/cpu/program/KernelCompiler.h"

#include <memory>
#include <vector>

namespace ortc::cpu {

/// Memory to run a kernel in, alone and on one core: the buffers of a step that calls it, and a workspace.
/// What is in place there is in place here. Denormal numbers are zero while one of these exists, whatever the step has:
/// calls in place, one after the other, would make them of any number.
class KernelTrial {
public:
  KernelTrial(plan::StepOp step, int64_t workspaceBytes);
  ~KernelTrial();
  KernelTrial(const KernelTrial &) = delete;
  KernelTrial &operator=(const KernelTrial &) = delete;

  /// False when there was no memory for it.
  bool isReady() const { return data != nullptr; }
  int64_t bytes() const { return static_cast<int64_t>(size); }
  /// Seconds of a call, the fastest of a few.
  double time(ortc_task_fn kernel, int64_t chunks);
  /// The same for code of one kernel, in turns, so that what else the machine does meets all alike. What is
  /// clearly slower than the best is left after its first turns.
  struct Code {
    ortc_task_fn kernel;
    int64_t chunks;
  };
  std::vector<double> timeInTurns(const std::vector<Code> &codes);

private:
  void run(const Code &code);

  void *mapping = nullptr;
  uint8_t *data = nullptr; ///< in it
  size_t size = 0;
  std::vector<void *> arguments;
  DenormalModeHere mode{/*areZero=*/true};
};

/// Runs every kernel of `code` some times on memory of its own, on one core, and gives the seconds of the
/// fastest call, in the order of `kernels.names`; 0 for kernels that cannot be run alone (checks of indices), and
/// where there is no memory for a kernel's buffers. The target has to run on this machine. Buffers are those of the
/// first step that calls the kernel: what is in place there is in place here. Fails when the code cannot be loaded.
Expected<std::vector<double>> measureKernels(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                                             const ProgramCode &code);

/// Variants of kernels that can be called.
struct LoadedVariants : backends::TargetCode {
  explicit LoadedVariants(LoadedBlob blob) : blob(std::move(blob)) {}
  LoadedBlob blob;
};
Expected<std::unique_ptr<LoadedVariants>> loadVariants(ProgramCode code);

/// Seconds of the variants with these numbers, all of the kernel that `step` calls (KernelTrial).
Expected<std::vector<double>> timeVariants(plan::StepOp step, const LoadedVariants &variants,
                                           const std::vector<size_t> &numbers);

} // namespace ortc::cpu
