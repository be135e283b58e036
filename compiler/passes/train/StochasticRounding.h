// Rounding to bf16 at random, right on average.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "dialects/train/TrainDialect.h"

namespace ortc::train {

/// The key of what is drawn to round the tensor of that name.
uint32_t roundingKey(llvm::StringRef name, uint64_t seed);

/// Fails, with a message, where the tensor has more elements than one draw can have.
mlir::LogicalResult checkRounding(TensorOp tensor);

/// `value`, of f32, as bf16: one of the two numbers beside it, the nearer one the likelier, so that the mean of many
/// roundings is the value. What bf16 has stays as it is, infinities and NaN too; the number above the largest one is
/// infinity. Draws follow from `step` (i64, rank 0), key and element.
mlir::Value roundStochastically(nn::TensorBuilder &builder, mlir::Value value, mlir::Value step,
                                uint32_t key);

} // namespace ortc::train
