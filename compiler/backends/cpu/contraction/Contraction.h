// Kernels for C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/emit/Epilogue.h"
#include "compiler/kernels/contraction/ContractionShape.h"

namespace ortc::cpu {

/// A contraction as a kernel of its own.
struct ContractionSpec : kernels::ContractionShape {
  std::string name;
  /// Arguments of the kernel in ABI order; the operands' `buffer` counts these.
  llvm::SmallVector<emit::KernelBuffer> buffers;
  emit::Epilogue epilogue;
  /// The epilogue is long: emit it once per vector of a row instead of once per vector of a tile, at the
  /// price of a trip of the sums through memory.
  bool rollEpilogue = false;
  /// An operand that is only written, has the accumulator's type, every element of C once, and shares memory with no
  /// other operand: it holds partial sums between blocks of k. -1: partial sums live in the workspace.
  int partialOperand = -1;
  Numerics numerics = Numerics::Fast;
  const KernelChoices *choices = nullptr; ///< KernelBlocking is complete only with them
};

/// Emits the kernel into `module` and says what its caller must know; fails with a diagnostic when
/// `spec.choices` have a choice for it that is impossible. The order of summation of an element is that of
/// the k dims (16 interleaved sums and a tree for the thin shapes that `usesDotKernel` names), whatever
/// target, blocking and chunk. Only the matrix unit (MatrixPlan.h) has an order of its own, which depends on
/// the shape alone.
llvm::FailureOr<KernelInfo> emitContraction(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                            const ContractionSpec &spec, const Target &target);

/// Whether a kernel for the matrix unit is estimated to be faster than one that reads both operands in place,
/// with vectors. Depends on the shape and on whether there is a unit only.
bool isFasterOnUnit(const ContractionSpec &spec, const Target &target);

} // namespace ortc::cpu
