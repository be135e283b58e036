// Attention in a block before it is cut into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "mlir/IR/Block.h"

#include <vector>

namespace ortc::fusion {

/// Operations that become kernels of attention (compiler/kernels/attention), a list for each. Operations that others
/// read, too, are copied, so that the scores of no list are used outside. What a gradient computes again of sums along
/// keys is taken from where it was computed first.
std::vector<llvm::SmallVector<mlir::Operation *>> formAttention(mlir::Block &block,
                                                                const kernels::FusionLimits &limits);

} // namespace ortc::fusion
