// The order of the elements of a column.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/emit/LoopBuilder.h"
#include "dialects/nn/NnDialect.h"

namespace ortc::cpu {

/// Bytes per worker that sorting takes.
int64_t workspaceOfSort(nn::ArgSortOp op);

/// Emits the sorting of one column: a number below the elements beside the axis.
void emitSort(emit::LoopBuilder &builder, nn::ArgSortOp op, const KernelFunction &kernel, mlir::Value column);

} // namespace ortc::cpu
