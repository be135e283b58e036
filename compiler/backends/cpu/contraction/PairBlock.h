// A block of sums on vectors whose lanes sum products of pairs of bf16.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/contraction/MatrixUnit.h"

namespace ortc::cpu {

class Architecture;

/// What Architecture::emitBlockProduct does, for operands of one part and by Architecture::emitPairProduct: eight rows
/// by two vectors of columns at a time, whose sums are in registers. Fetches nothing ahead: panels are read in order.
void emitPairBlock(mlir::OpBuilder &builder, mlir::Location loc, const Architecture &architecture,
                   const BlockProduct &product);

} // namespace ortc::cpu
