// Choices that a model writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/Operation.h"

namespace ortc::nn {

/// On an arith.select: the model chooses (Where), it is no part of a formula of the compiler (relu). A value that
/// it leaves out may be anything, and so may derivatives there: `compiler/autodiff/LeftOut.h`. Only gradients depend on
/// it.
inline constexpr llvm::StringLiteral kChoice = "nn.choice";

inline void markChoice(mlir::Operation *select) {
  select->setAttr(kChoice, mlir::UnitAttr::get(select->getContext()));
}
inline bool isChoice(mlir::Operation *op) { return op->hasAttr(kChoice); }

} // namespace ortc::nn
