// Sums of rows at places that indices name, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launches of a scatter_add alone, or of one into a large table whose sums only elementwise operations read.
/// The indices are sorted; then every element of the table is a thread's, which adds the updates of its row in their
/// order. False, without any launch, where `function` is something else.
bool generateScatter(KernelBuilder &kernel, mlir::func::FuncOp function, const GeneratorOptions &options);

} // namespace ortc::gpu
