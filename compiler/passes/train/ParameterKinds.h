// Which parameters are biases, and which are scales of norms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/train/TrainDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ortc::train {

enum class ParameterKind {
  Weight, ///< more than one dimension above 1, or a factor of a product, or an operand of anything else
  Bias,   ///< a vector that is added
  Norm    ///< a vector that is multiplied element by element
};

/// Of every parameter, from what the functions `@backward_B` do with it. A vector has at most one dimension above 1.
/// Changes of shape and type between a parameter and what reads it, also in loops, do not count, and of several readers
/// a product of elements decides. A vector that nothing reads is a bias.
llvm::DenseMap<mlir::Attribute, ParameterKind> findKinds(mlir::ModuleOp module);

} // namespace ortc::train
