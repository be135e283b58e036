// Losses with a margin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "passes/train/Losses.h"

namespace ortc::train {

/// Shapes of predictions that are vectors along their last axis.
inline bool areVectors(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) {
  return !shapes.front().empty() && llvm::all_equal(shapes);
}

inline constexpr const char *kMargin = "margin";

/// What of x is above zero. As in PyTorch, zero itself has no gradient.
inline mlir::Value takePositive(nn::TensorBuilder &b, mlir::Value x) {
  mlir::Value zeros = b.zerosLike(x);
  return b.select(b.compare(mlir::arith::CmpFPredicate::OLE, x, zeros), zeros, x);
}

} // namespace ortc::train
