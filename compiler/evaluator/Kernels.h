// The evaluator's loops, by family.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function returns the results of `op`, not yet rounded to their types, or nothing when the operation is not of
// its family.
#pragma once

#include "compiler/evaluator/HostTensor.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace ortc::evaluator {

using Operands = llvm::ArrayRef<const HostTensor *>;
using Results = llvm::SmallVector<HostTensor>;
/// No value: another family. Failure: an index was out of range (reported).
using FamilyResult = std::optional<mlir::FailureOr<Results>>;

FamilyResult evaluateElementwise(mlir::Operation *op, Operands operands);
FamilyResult evaluateMovement(mlir::Operation *op, Operands operands);
FamilyResult evaluateReduction(mlir::Operation *op, Operands operands);
FamilyResult evaluateContraction(mlir::Operation *op, Operands operands);
FamilyResult evaluateIndexing(mlir::Operation *op, Operands operands);

/// The type of result `i` of `op`.
inline mlir::RankedTensorType resultType(mlir::Operation *op, unsigned i = 0) {
  return mlir::cast<mlir::RankedTensorType>(op->getResult(i).getType());
}
inline FamilyResult single(HostTensor tensor) {
  Results results;
  results.push_back(std::move(tensor));
  return mlir::FailureOr<Results>(std::move(results));
}

} // namespace ortc::evaluator
