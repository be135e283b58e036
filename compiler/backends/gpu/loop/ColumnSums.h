// Loop programs that reduce leading dimensions, with enough blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/loop/ColumnCut.h"

namespace ortc::gpu {

using kernels::ColumnCut;

/// Blocks of `cut.warps` warps, and what a thread of one does where a block has all rows. `block`: of those.
int64_t columnBlocks(const kernels::LoopProgram &program, const ColumnCut &cut);
void emitColumnBlock(KernelBuilder &kernel, ThreadBuilder &b, const kernels::LoopProgram &program,
                     mlir::ValueRange buffers, const ColumnCut &cut, const emit::MathOptions &options,
                     mlir::Value block);

/// Adds the launches. Every sum is that of its parts in order.
void emitColumnSums(KernelBuilder &kernel, const kernels::LoopProgram &program, const ColumnCut &cut,
                    const emit::MathOptions &options);

} // namespace ortc::gpu
