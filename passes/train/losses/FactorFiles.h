// Factors of a loss that a file has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "passes/train/Losses.h"

namespace ortc::train {

/// Attribute of the function of a loss, for the manifest: the factors of classes that a mean divides by.
inline constexpr llvm::StringLiteral kClassWeightAttribute = "train.class_weight";

/// The constant of the key class_weight (one number for each class) or pos_weight (a shape that broadcasts to that of
/// the prediction), in the prediction's type; null where neither is given. Fails, with an error, where the file cannot
/// be read, has another shape, or a number that is negative or not finite.
mlir::FailureOr<mlir::Value> readFactors(const LossOperands &operands, llvm::StringRef loss);

} // namespace ortc::train
