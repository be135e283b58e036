// What kernels take, known before there is code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/cost/CostModel.h"
#include "compiler/backends/cpu/program/KernelCompiler.h"

namespace ortc::cpu {

/// Makes every outlined kernel of `module` for `target` (makeKernels), and notes on its function the time that a call
/// is estimated to take (`plan.time`: by the table of the cost model, so that it is the same on every
/// machine) and the scratch that it needs (`plan.scratch`), the most of all targets seen so far.
Status annotateKernels(mlir::ModuleOp module, const Target &target, const CodeOptions &options, bool compiles,
                       MadeKernels &made);

} // namespace ortc::cpu
