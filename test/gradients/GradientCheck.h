// Gradients against central differences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A case is a function in Inputs/*.mlir. Its arguments may carry
//   test.low, test.high  (f64)       random values lie in [low, high); default [-2, 2)
//   test.below           (i64)       random integers lie in [0, below)
//   test.distinct                    integers are distinct along the last axis: a random permutation per row
//   test.value           (elements)  these values, no random ones
//   test.gradient        (elements)  the gradient they must give for a cotangent of ones
#pragma once

#include "compiler/autodiff/Differentiate.h"
#include "compiler/evaluator/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ortc::gradients {

/// Values of a case's arguments, drawn from `seed` or given by test.value.
llvm::SmallVector<evaluator::HostTensor> makeArguments(mlir::func::FuncOp function, unsigned seed);

/// The gradients of the floating-point arguments for the sum of all floating-point results weighted by
/// `cotangents`, from the engine and the evaluator. Null types for other arguments. Fails where the engine
/// does.
mlir::FailureOr<llvm::SmallVector<evaluator::HostTensor>>
engineGradients(mlir::func::FuncOp function, llvm::ArrayRef<evaluator::HostTensor> arguments,
                llvm::ArrayRef<evaluator::HostTensor> cotangents,
                const autodiff::DifferentiateOptions &options = {});

/// The same from central differences of the evaluated function.
llvm::SmallVector<evaluator::HostTensor> numericGradients(mlir::func::FuncOp function,
                                                          llvm::ArrayRef<evaluator::HostTensor> arguments,
                                                          llvm::ArrayRef<evaluator::HostTensor> cotangents);

/// Cotangents of all results: random in [-1, 1), or ones.
llvm::SmallVector<evaluator::HostTensor> makeCotangents(mlir::func::FuncOp function, unsigned seed,
                                                        bool ones = false);

/// Largest distance over all arguments, relative to the largest magnitude of each numeric gradient (at least
/// 1e-3).
double distance(llvm::ArrayRef<evaluator::HostTensor> engine, llvm::ArrayRef<evaluator::HostTensor> numeric);

/// Central differences with a step of 1e-5 are right to about 1e-9 for the functions and values used here; a
/// mutation moves an operand's gradient by 1e-2.
inline constexpr double kTolerance = 1e-6;

} // namespace ortc::gradients
