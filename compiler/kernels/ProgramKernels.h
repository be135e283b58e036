// The kernels that programs call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/KernelWork.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>
#include <vector>

namespace ortc::kernels {

/// What is the same for all targets of a family: the kernels that its programs use, in order of first use, and the
/// tensors that index checks name.
struct ProgramKernels {
  std::vector<std::string> names;
  std::map<std::string, size_t> numbers; ///< in `names`
  std::vector<KernelWork> works;         ///< of a call of each
  size_t first = 0; ///< kernels of families before this one: the artifact numbers all in a row
  std::vector<std::string> checkNames; ///< those of families before this one, then its own
};
/// `before`: of the family before this one, or null.
ProgramKernels findKernels(mlir::ModuleOp module, const ProgramKernels *before = nullptr);

/// What a kernel does: a function that is marked `plan.kind`.
KernelWork workOf(mlir::func::FuncOp kernel);

/// The first step that calls each kernel.
llvm::StringMap<plan::StepOp> findFirstSteps(mlir::ModuleOp module);

/// How often the steps in `scope`, a program or a module, call each kernel; in the order of `kernels.names`.
std::vector<int64_t> countCalls(mlir::Operation *scope, const ProgramKernels &kernels);

} // namespace ortc::kernels
