// A function's tensor program as a kernel of one kind.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/KernelForm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

namespace ortc::kernels::test {

/// Whether one kernel computes the function, with the limits of CPUs.
inline bool isOneKernel(plan::KernelKind kind, mlir::func::FuncOp function, std::string &reason) {
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  return formOf(kind).suits(function.getArguments(), outputs, FusionLimits(), reason);
}

/// Its in-place pairs; none where it is no such kernel.
inline llvm::SmallVector<int64_t> pairsOf(plan::KernelKind kind, mlir::func::FuncOp function) {
  std::string reason;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto pairs = formOf(kind).inPlacePairs(function.getArguments(), outputs, reason);
  return mlir::succeeded(pairs) ? *pairs : llvm::SmallVector<int64_t>();
}

} // namespace ortc::kernels::test
