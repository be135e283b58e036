// Kernels that are one loop nest, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/backends/gpu/LaunchFunction.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::gpu {

/// Adds the launches of a loop program to `kernel`. Where the lanes are reduced, a warp takes a row: its lanes are the
/// interleaved sums of SumOrder.h, which are joined in halves. Elsewhere a thread takes a point.
void emitLoops(KernelBuilder &kernel, const LoopProgram &program, const MathOptions &options);

} // namespace ortc::gpu
