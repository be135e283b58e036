// What optimizers with steps of the size of their parameter share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Optimizers.h"

namespace ortc::train {

Key trustClipKey();
Key alwaysAdaptKey();

bool isClipped(const Settings &settings);
/// Whether the step of this parameter has a ratio of norms: where it decays, or with always_adapt.
bool adapts(const UpdateStep &step);
/// `ratio`, or 1 where one of both norms is 0 or NaN.
mlir::Value guardRatio(nn::TensorBuilder &b, mlir::Value ratio, mlir::Value one, mlir::Value other);

} // namespace ortc::train
