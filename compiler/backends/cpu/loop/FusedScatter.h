// The kernel of a table of sums that only a loop reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/loop/ScatterKernel.h"

namespace ortc::cpu {

/// Creates the kernel. `buffers` are inputs, then outputs; `info` has its name and bytes.
KernelInfo emitFusedScatter(const kernels::FusedScatter &form, emit::LoopBuilder &builder,
                            mlir::ModuleOp module, llvm::ArrayRef<emit::KernelBuffer> buffers,
                            KernelInfo info, const Target &target, Numerics numerics);

} // namespace ortc::cpu
