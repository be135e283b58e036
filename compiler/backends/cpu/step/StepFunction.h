// The code that calls a program's kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/object/StackUse.h"
#include "compiler/options/Numerics.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::cpu {

struct Isa;

/// `void ortc_task(context, chunk, worker)`: what a step hands to the pool, for threads of the host to call.
inline constexpr llvm::StringLiteral kTaskFunction = "ortc_task";

/// What the step function must know of a kernel, besides what its plan.step says.
struct StepKernel {
  std::string symbol; ///< of the ABI entry
  int64_t chunks = 1; ///< pieces of work
  /// worth handing to the pool; otherwise its chunks run in order on the calling thread
  bool isParallel = false;
  bool usesWorkspace = false; ///< takes the base of the workers' workspaces as its last pointer
  bool isCheck = false;       ///< `i32 symbol(ptr args, ptr detail)`: not 0 ends the step with that status
  uint32_t traceIndex = 0;    ///< position in the artifact's kernel names
};

/// Creates `int32_t symbol(const ortc_call *)` (ortc/call.h) for `program` in `module`, as llvm ops, and
/// `ortc_dispatch`, which all step functions of a module share. Kernels are declared, to be linked from their objects.
/// `kernels` is keyed by the name of the kernel that a plan.step refers to. Returns where calls through
/// pointers lead when this step runs.
PointerCalls createStepFunction(mlir::ModuleOp module, plan::ProgramOp program, llvm::StringRef symbol,
                                const llvm::StringMap<StepKernel> &kernels, const Isa &isa,
                                Numerics numerics);

} // namespace ortc::cpu
