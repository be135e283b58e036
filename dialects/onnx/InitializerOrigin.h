// Attributes that name an origin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace ortc::onnx {

/// Attribute of an initializer: "parameter", "buffer" or "constant", where the exporter says so.
inline constexpr llvm::StringLiteral kOrigin = "onnx.origin";

/// Attribute of an initializer that was computed from parameters of the exported program: their names.
inline constexpr llvm::StringLiteral kSources = "onnx.sources";

/// Attribute of a BatchNormalization that the exported program had in training mode: kBatch, or kBatchOnly where it had
/// no running statistics.
inline constexpr llvm::StringLiteral kTracedNorm = "onnx.traced_norm";
inline constexpr llvm::StringLiteral kBatch = "batch", kBatchOnly = "batch only";

/// Attribute of Max, Min, Clip, ReduceMax and ReduceMin where the exported program says who gets the gradient of equal
/// elements: kBound (a number, and nobody), kShared (half each side) or kFirst (the first one all).
inline constexpr llvm::StringLiteral kTracedTies = "onnx.traced_ties";
inline constexpr llvm::StringLiteral kBound = "bound", kShared = "shared", kFirst = "first";

/// Attribute of the Softmax and the Where of an attention with a mask, where the exported program says so: a query
/// whose keys are all hidden has weights of zero.
inline constexpr llvm::StringLiteral kMaskedAttention = "onnx.masked_attention";

/// Attribute of a SoftmaxCrossEntropyLoss, an f64: the label smoothing of the exported program.
inline constexpr llvm::StringLiteral kLabelSmoothing = "onnx.label_smoothing";

} // namespace ortc::onnx
