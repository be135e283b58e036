// Losses of class indices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Losses.h"

namespace ortc::train {

/// The keys that a loss of class indices has.
Key axisKey();
Key ignoreIndexKey();
/// PyTorch's `weight`.
Key classWeightKey();

/// x, which has the shape of the prediction, times the factors of classes, if there are any.
mlir::Value weighClasses(const LossOperands &operands, mlir::Value x);

/// What a formula makes of class indices. Those out of range end the step.
struct ClassLabels {
  explicit ClassLabels(const LossOperands &operands);

  /// x, which has the shape of the prediction, at the class of every label; 0 where labels are ignored.
  mlir::Value pick(mlir::Value x) const;
  /// The loss of terms of the label's shape, without those of ignored labels. With `countsFactors` a label counts in a
  /// mean what its class weighs.
  mlir::Value reduce(mlir::Value each, double sign, bool countsFactors) const;

  const LossOperands &operands;
  mlir::Value counted; ///< i1 of the label's shape: the label is not ignored
  mlir::Value factors; ///< of the labels' classes, or null
  mlir::Value isClass; ///< i1 of the prediction's shape: the place of a label's class
};

/// -logProbability at the class indices of the operands, of labels that are not ignored; with `smoothing` s,
/// -(1 - s) times that minus s / C times the sum over all classes.
mlir::Value reduceOverClasses(const LossOperands &operands, mlir::Value logProbability, double smoothing);

} // namespace ortc::train
