// The kinds of kernels: what each computes, apart from how a machine runs it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "compiler/kernels/KernelWork.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/ValueRange.h"

#include <string>

namespace ortc::kernels {

/// A kind of kernel. Kernels are given as the values that they take and those that they make; everything
/// between them is defined by operations outside of any plan.kernel.
struct KernelForm {
  plan::KernelKind kind;
  /// Whether a kernel with this operation is of this kind, whatever else it computes.
  bool (*isRoot)(mlir::Operation *op);
  /// Whether such a kernel may compute more than that: elementwise operations on the results of the root
  /// before they are stored, and views of its operands.
  bool (*takesEpilogue)(mlir::Operation *root);
  /// Whether one kernel of this kind computes `outputs`, and is worth having. `reason` says what stands against it.
  bool (*suits)(mlir::ValueRange inputs, mlir::ValueRange outputs, const FusionLimits &limits,
                std::string &reason);
  /// Pairs of an input and an output, one after the other, that may share memory: every element of the input
  /// is read before the output's element in the same place is written. Fails, with a `reason`, where no
  /// kernel of this kind computes this.
  mlir::FailureOr<llvm::SmallVector<int64_t>> (*inPlacePairs)(mlir::ValueRange inputs,
                                                              mlir::ValueRange outputs, std::string &reason);
  /// `flops` and `cost` of a kernel that computes this; zeros where nothing is computed.
  KernelWork (*work)(mlir::ValueRange inputs, mlir::ValueRange outputs);
};

/// One row for each plan::KernelKind.
llvm::ArrayRef<KernelForm> kernelForms();
const KernelForm &formOf(plan::KernelKind kind);
/// The form of a kernel that computes `ops`.
const KernelForm &formOf(llvm::ArrayRef<mlir::Operation *> ops);

/// What a kernel of this kind does, bytes included.
KernelWork workOf(plan::KernelKind kind, mlir::ValueRange inputs, mlir::ValueRange outputs);

} // namespace ortc::kernels
