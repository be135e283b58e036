// Vector-Jacobian products of straight-line SSA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reverse mode over one block of pure tensor operations. A loss is one client: its cotangent is the
// constant 1.
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/DenseMap.h"

namespace ortc::autodiff {

/// Attaches every rule of compiler/autodiff/rules to its operation when its dialect is loaded.
void registerGradientRules(mlir::DialectRegistry &registry);

/// Scales one operand's gradient of every operation of one name. For tests only: shows that a check of
/// gradients notices a wrong rule.
struct Mutation {
  std::string operation; ///< e.g. "arith.mulf"; empty: none
  unsigned operand = 0;
  double factor = 1.01;
};

struct DifferentiateOptions {
  Mutation mutation;
  /// A remark at each differentiated operation that names the operands and results its gradient reads. For tests only.
  bool remarkSaved = false;
};

/// Gradients, and the values that were replaced while they were made: an operation with a body is replaced by one that
/// also gives what is saved of it. A caller that holds values of the block looks them up.
struct Differentiated {
  llvm::SmallVector<mlir::Value> gradients; ///< in the order of `withRespectTo`; null where none arrives
  llvm::DenseMap<mlir::Value, mlir::Value> replaced;
};

/// Builds, at the builder's insertion point, the gradients of `sum over i of <outputs[i], cotangents[i]>` for
/// every value of `withRespectTo`.
///
/// All values are of floating-point tensor type, belong to one block (as results or arguments) and dominate
/// the insertion point, which is in the same block behind the outputs. Cotangents have the types of their
/// outputs. Only operations between `withRespectTo` and `outputs` are differentiated. Contributions to a
/// value are added in reverse program order of its users, so that equal programs get equal gradients to the
/// last bit. Fails, with an error at the operation, when one of these has no rule. Linear in operations plus
/// operands.
mlir::FailureOr<Differentiated> differentiate(nn::TensorBuilder &builder, mlir::ValueRange outputs,
                                              mlir::ValueRange cotangents, mlir::ValueRange withRespectTo,
                                              const DifferentiateOptions &options = {});

} // namespace ortc::autodiff
