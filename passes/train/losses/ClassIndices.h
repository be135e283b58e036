// Losses of class indices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "passes/train/Losses.h"

namespace ortc::train {

/// The keys that a loss of class indices has.
Key axisKey();
Key ignoreIndexKey();

/// The mean of -logProbability at the class indices of the operands, over labels that are not ignored; with
/// `smoothing` s, of -(1 - s) times that minus s / C times the sum over all classes. No label at all gives NaN, as
/// 0 / 0 does.
mlir::Value averageOverClasses(const LossOperands &operands, mlir::Value logProbability, double smoothing);

} // namespace ortc::train
