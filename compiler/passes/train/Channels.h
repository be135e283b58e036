// Parameters of which some output channels are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameter stays one tensor, which the forward part reads whole. Its gradient and its state are of the first
// channels only, and its update writes these and leaves the others as they are.
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "dialects/train/TrainDialect.h"

namespace ortc::train {

/// The part of a parameter that is trained, in its stored layout.
struct TrainedChannels {
  int64_t axis, count; ///< the first `count` along `axis`
};

/// Marks `parameter` (`train.channels`): along `axis` of the file's layout, the first `count` are trained.
void markChannels(TensorOp parameter, int64_t axis, int64_t count);

/// Nothing where all of it is trained.
std::optional<TrainedChannels> findChannels(TensorOp parameter);

/// The type of what is trained: in the file's layout, and as it is stored.
mlir::RankedTensorType trainedType(TensorOp parameter);
mlir::RankedTensorType storedTrainedType(TensorOp parameter);
/// The type of its gradient: f32 of bf16 parameters, and of what is trained.
mlir::RankedTensorType gradientType(TensorOp parameter);

/// The trained part of `whole`, which is the parameter or of its shape; `whole` itself where all of it is.
mlir::Value takeTrained(nn::TensorBuilder &b, TensorOp parameter, mlir::Value whole);
/// `whole` with its trained part replaced.
mlir::Value putTrained(nn::TensorBuilder &b, TensorOp parameter, mlir::Value part, mlir::Value whole);

} // namespace ortc::train
