// Contractions with what hangs on them: views of the operands, elementwise operations on the result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_COMPILER_CODEGEN_CONTRACTION_FUSEDCONTRACTION_H
#define ORTC_COMPILER_CODEGEN_CONTRACTION_FUSEDCONTRACTION_H

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ortc::codegen {

/// Whether one contraction kernel computes `outputs` from `inputs`, with everything between defined by operations outside of
/// any plan.kernel: exactly one nn.dot; between inputs and dot nothing but movement that strides can say (transpose,
/// reshape, broadcast, slice); behind it elementwise operations on every element of the result once, which may be
/// reshaped and transposed and read inputs broadcast. Vectors of the result must stay vectors in every operand of the
/// epilogue. `reason` says what stands against it.
bool isFusedContraction(mlir::ValueRange inputs, mlir::ValueRange outputs, std::string &reason);

/// Pairs of an input and an output, one after the other, that may share memory in that kernel: what hangs on the dot reads
/// the input at the element that it writes, and nowhere else.
llvm::SmallVector<int64_t> contractionInPlacePairs(mlir::ValueRange inputs, mlir::ValueRange outputs);

/// Creates the kernel of a tensor program that `isFusedContraction` accepts, or that is a single nn.dot on its
/// arguments. `buffers` are the function's arguments, then its results. `choices`: as in ContractionSpec.
mlir::FailureOr<KernelInfo> generateFusedContraction(mlir::ModuleOp module, mlir::func::FuncOp function,
                                                     llvm::ArrayRef<KernelBuffer> buffers,
                                                     const Target &target, Numerics numerics,
                                                     const KernelChoices *choices = nullptr);

} // namespace ortc::codegen

#endif // ORTC_COMPILER_CODEGEN_CONTRACTION_FUSEDCONTRACTION_H
