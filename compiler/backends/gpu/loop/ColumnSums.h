// Loop programs that reduce leading dimensions, with enough blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::gpu {

/// How the rows of a reduction are shared out. A warp has 32 neighbouring points and a part of the rows.
struct ColumnCut {
  unsigned dim = 0;     ///< the reduced dimension that is cut
  int64_t partSize = 1; ///< of its indices, in all parts but the last
  int64_t warps = 1;    ///< of a block, a part each
  int64_t chunks = 1;   ///< blocks that have the same points; with several, a second launch adds their sums
};

/// The cut, which depends on the program alone, or nothing where a thread for each point does as well.
std::optional<ColumnCut> chooseColumnCut(const kernels::LoopProgram &program);

/// Adds the launches. Every sum is that of its parts in order.
void emitColumnSums(KernelBuilder &kernel, const kernels::LoopProgram &program, const ColumnCut &cut,
                    const emit::MathOptions &options);

} // namespace ortc::gpu
