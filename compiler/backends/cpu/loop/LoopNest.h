// The loops of a loop kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/loop/LoopPlan.h"
#include "compiler/backends/emit/LoopWalk.h"

namespace ortc::cpu {

/// A buffer that holds the elements of one block of the lane dimension at a time, from its first one on.
struct BlockBuffer {
  unsigned buffer;
  std::function<void(mlir::Value block)> fill; ///< emits what computes a block
};

/// Emits the body of the kernel at the builder's insertion point. With a block buffer the program has one dimension.
void emitLoops(emit::LoopBuilder &builder, const kernels::LoopProgram &program, const LoopPlan &plan,
               const KernelFunction &kernel, const emit::MathOptions &options,
               const BlockBuffer *blockBuffer = nullptr);

} // namespace ortc::cpu
