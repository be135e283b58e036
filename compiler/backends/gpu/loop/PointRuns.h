// Elementwise loops whose threads have several neighbours each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::gpu {

/// Neighbours along the lanes that a thread should have, so that it reads and writes 16 bytes of the widest buffer at
/// once; 1 where there is a reduction, where memory is not read in order, or where threads would be too few.
int64_t chooseRun(const KernelBuilder &kernel, const kernels::LoopProgram &program);

/// Adds the launch with `run` points for each thread.
void emitRuns(KernelBuilder &kernel, const kernels::LoopProgram &program, int64_t run,
              const emit::MathOptions &options);

} // namespace ortc::gpu
