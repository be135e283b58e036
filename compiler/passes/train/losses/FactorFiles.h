// Factors of a loss that a file has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Losses.h"

namespace ortc::train {

/// Attribute of the function of losses, for the manifest: the factors of classes that the mean of the loss with that
/// label divides by.
inline std::string classWeightAttribute(llvm::StringRef label) {
  return ("train.class_weight." + label).str();
}

/// The constant of the key class_weight (one number for each class) or pos_weight (a shape that broadcasts to that of
/// the prediction), in the prediction's type; null where neither is given. Fails, with an error, where the file cannot
/// be read, has another shape, or a number that is negative or not finite.
mlir::FailureOr<mlir::Value> readFactors(const LossOperands &operands);

} // namespace ortc::train
