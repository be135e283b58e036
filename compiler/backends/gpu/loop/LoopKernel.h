// Kernels that are one loop nest, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launch of a loop program to `kernel`. Where the lanes are reduced, a warp takes a row: its lanes are the
/// interleaved sums of SumOrder.h, which are joined in halves. With fast numerics a block takes a long row, whose warps
/// are joined in order, and sums of few columns are those of parts of the rows (ColumnSums.h). Rows that are short
/// enough stay in registers from pass to pass (HeldRows.h). Elsewhere a thread takes a point, or a run of them
/// (PointRuns.h).
void emitLoops(KernelBuilder &kernel, const LoopProgram &program, const GeneratorOptions &generator);

/// Whether what is stored for a whole row or column may lie where others of its threads read.
bool storesRowsInPlace(const KernelBuilder &kernel, const LoopProgram &program);

/// Sets the indices of the parallel dimensions from a position over them, or over runs of so many neighbours along the
/// lanes, to the first of a run.
void placePoint(ThreadBuilder &b, const LoopProgram &program, ElementEmitter &emitter, mlir::Value position,
                int64_t run = 1);

/// The value of a node that is not to be computed, or null.
using NodeSupplier = llvm::function_ref<mlir::Value(ElementEmitter &, unsigned node)>;

/// What a thread does at one point of a program without lanes that are reduced: its position over the parallel
/// dimensions.
void emitPoint(ThreadBuilder &b, const LoopProgram &program, mlir::ValueRange buffers,
               const MathOptions &options, mlir::Value position, NodeSupplier supply);

} // namespace ortc::gpu
