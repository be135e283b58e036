// Choices for kernels by measurement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/tuning/TuneCache.h"

namespace ortc::tuning {

/// What came of it.
struct TuneResult {
  size_t kernels = 0, faster = 0; ///< that were measured, that are cut otherwise now
  size_t variants = 0;            ///< compiled and measured in all
};

/// Measures how kernels of `code` could be cut otherwise, those that take most of all programs' time first,
/// and puts what it finds into `cache`. `code` was compiled with the cache's choices; what the cache has
/// already is left alone, and so is what takes less than a hundredth. A choice wins that is 3 % faster,
/// twice, and keeps the target's workers no less busy. The target has to run on this machine. Fails, without naming
/// model or target, when something cannot be compiled or there is no memory.
Status tuneKernels(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                   const backends::Target &target, const backends::TargetCode &code,
                   const backends::CodeOptions &options, TuneCache &cache, TuneResult &result);

} // namespace ortc::tuning
