// An element of the result of pooling, or of its gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"

namespace ortc::emit {

/// max_pool, avg_pool or the gradient of one, of f32 or f64.
bool isPool(mlir::Operation *op);

/// Positions of its window.
int64_t countTaps(mlir::Operation *op);

/// Computes and stores the elements of the result at `position` (image, then spatial dimensions) for `width` channels
/// from `channel` on, or for that channel alone as a scalar where `width` is 0. `buffers`: operands, then results.
void emitPoolElement(LoopBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> buffers,
                     llvm::ArrayRef<mlir::Value> position, mlir::Value channel, int64_t width);

} // namespace ortc::emit
