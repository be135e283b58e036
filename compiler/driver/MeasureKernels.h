//===- MeasureKernels.h - how long kernels take, here ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/KernelCompiler.h"

#include <vector>

namespace ortc::driver {

/// Runs every kernel of `code` some times on memory of its own, on one core, and gives the seconds of the fastest call, in
/// the order of `kernels.names`; 0 for kernels that cannot be run alone (checks of indices). The target has to run on
/// this machine. Buffers are those of the first step that calls the kernel: what is in place there is in place here.
/// Empty, with `error`, when there is not enough memory.
std::vector<double> measureKernels(mlir::ModuleOp module, const ProgramKernels &kernels,
                                   const TargetCode &code, std::string &error);

} // namespace ortc::driver
