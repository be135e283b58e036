// Sums of rows at places that indices name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/kernels/scatter/ScatterForm.h"

namespace ortc::cpu {

/// A block of the sums.
struct ScatterBlock {
  mlir::Value outer, row, column; ///< where it begins
  mlir::Value buffer, start;      ///< where its first row is kept, from column zero on
};

/// Emits one block: zeros, then what the indices bring there, for every row in their order.
void emitScatterBlock(emit::LoopBuilder &builder, const kernels::ScatterPlan &plan, mlir::Type element,
                      mlir::Value indices, mlir::Value updates, const ScatterBlock &block,
                      const Target &target);

} // namespace ortc::cpu
