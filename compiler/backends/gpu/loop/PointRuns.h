// Elementwise loops whose threads have several neighbours each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/loop/LoopKernel.h"

namespace ortc::gpu {

/// Whether so many threads keep a device busy: where they are fewer, none should have several points.
bool fillsDevice(int64_t threads);

/// Points of a thread at most.
inline constexpr int64_t kMostRun = 8;

/// Neighbours along the lanes that a thread can have, so that it reads and writes 16 bytes of the widest buffer at
/// once; 1 where there is a reduction, or where memory is not read in order. `alignmentOf`: bytes that the start of a
/// buffer is a multiple of, 0 where its values are at hand.
int64_t widestRun(const kernels::LoopProgram &program, llvm::function_ref<int64_t(unsigned)> alignmentOf);

/// Those that it should have: 1 where threads would be too few.
int64_t chooseRun(const KernelBuilder &kernel, const kernels::LoopProgram &program);

/// What a thread does that has the run of this number, counted over the parallel dimensions. `supply`: as for a point,
/// of the run's element `shift`; may be null.
using RunSupplier = llvm::function_ref<mlir::Value(ElementEmitter &, int64_t shift, unsigned node)>;
void emitRun(ThreadBuilder &b, const kernels::LoopProgram &program, mlir::ValueRange buffers,
             const emit::MathOptions &options, mlir::Value number, int64_t run, RunSupplier supply);

/// Adds the launch with `run` points for each thread.
void emitRuns(KernelBuilder &kernel, const kernels::LoopProgram &program, int64_t run,
              const emit::MathOptions &options);

} // namespace ortc::gpu
