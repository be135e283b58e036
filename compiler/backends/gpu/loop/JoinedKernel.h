// Loops side by side in one launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds a launch whose blocks belong to one loop each: a thread takes a point or a run of neighbours, as in a launch of
/// the loop alone. On AMD's processors several, where there are many buffers.
mlir::LogicalResult generateJoined(KernelBuilder &kernel, mlir::func::FuncOp function,
                                   const GeneratorOptions &generator);

} // namespace ortc::gpu
