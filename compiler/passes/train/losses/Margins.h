// Losses with a margin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

namespace ortc::train {

/// Shapes of predictions that are vectors along their last axis.
inline bool areVectors(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) {
  return !shapes.front().empty() && llvm::all_equal(shapes);
}

inline constexpr const char *kMargin = "margin";

} // namespace ortc::train
