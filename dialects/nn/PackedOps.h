// Weights of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

#define GET_OP_CLASSES
#include "dialects/nn/NnPackedOps.h.inc"

namespace ortc::nn {

/// Numbers of a group.
inline constexpr int64_t kPackedGroup = 32;

/// The rows that `data` [..., groups, bytes of a group] and `scales` [..., blocks] stand for, as nn.unpack has it for
/// one leading dimension: f32 [..., 32 * groups].
mlir::Value unpackRows(TensorBuilder &builder, mlir::Value data, mlir::Value scales);

/// What `value` is the unpacked rows of, through transposes, slices from the first element on, and roundings of
/// numbers; null where it is something else. `steps`, where given, gets the operations between, the last one first.
UnpackOp findUnpack(mlir::Value value, llvm::SmallVectorImpl<mlir::Operation *> *steps = nullptr);

} // namespace ortc::nn
