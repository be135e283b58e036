// The kernels that programs call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace ortc::kernels {

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

} // namespace ortc::kernels
