// Patterns of the pass of that name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace ortc::simplify {

/// Patterns that move a transpose below one nn operation each.
void populateSinkThroughOps(mlir::RewritePatternSet &patterns);

} // namespace ortc::simplify
