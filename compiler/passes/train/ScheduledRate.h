// Rates that a step computes from its number.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "support/Schedule.h"

namespace ortc::train {

/// The rate of a schedule, f64, for its base `rate` and the number of updates before this one, i64. The bits are those
/// of Schedule::getRate.
mlir::Value schedule(nn::TensorBuilder &builder, const Schedule &schedule, mlir::Value rate,
                     mlir::Value updates);

} // namespace ortc::train
