// Reductions: where they begin and how two partial results become one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/LoopBuilder.h"
#include "dialects/nn/NnDialect.h"

namespace ortc::emit {

/// The type in which elements of type `element` are accumulated.
mlir::Type accumulatorType(mlir::Type element);

/// The value of a reduction before its first element; a vector of `width` of them, or with 0 a scalar.
mlir::Value reductionIdentity(LoopBuilder &builder, nn::ReduceKind kind, mlir::Type type, int64_t width);

/// Joins two partial results (scalars or vectors of equal type).
mlir::Value combine(LoopBuilder &builder, nn::ReduceKind kind, mlir::Value a, mlir::Value b);

/// `combine` on values in the form of buffers.
mlir::Value combineStored(LoopBuilder &builder, nn::ReduceKind kind, mlir::Type element, mlir::Value x,
                          mlir::Value y);

} // namespace ortc::emit
