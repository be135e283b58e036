// Making many kernels at a time, whatever the family.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <string>
#include <vector>

namespace ortc::backends {

/// Calls a worker for every number below `count`, on at most `threads` threads. Each thread makes its worker first: a
/// context of MLIR belongs to one thread while passes run.
void runJobs(size_t count, unsigned threads, llvm::function_ref<std::function<void(size_t)>()> makeWorker);

/// The dialects that kernels and their code are in.
void loadKernelDialects(mlir::MLIRContext &context);

/// The outlined kernels of a module: its functions that are marked `plan.kind`.
std::vector<mlir::func::FuncOp> listKernels(mlir::ModuleOp module);
/// A kernel as text, which another context reads.
std::string printKernel(mlir::Operation *kernel);
/// Whether arithmetic is in f64.
bool usesDoubles(mlir::func::FuncOp kernel);

/// Notes the time of a call, and scratch: the most of all targets that surveyed the kernel.
void annotateKernel(mlir::func::FuncOp kernel, double seconds, int64_t scratchBytes);

} // namespace ortc::backends
