// Sums along the keys of attention, before it is cut into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "mlir/IR/Block.h"

namespace ortc::fusion {

/// Whether `op` is a product of short sums that could make scores.
bool makesScores(mlir::Operation *op, const kernels::FusionLimits &limits);

/// Replaces sums along keys that a gradient computes again by those that were computed first, and sums that follow from
/// another product by a short one: sum_j e_ij (a_i . b_j) = a_i . sum_j e_ij b_j.
void simplifySums(mlir::Block &block, const kernels::FusionLimits &limits);

} // namespace ortc::fusion
