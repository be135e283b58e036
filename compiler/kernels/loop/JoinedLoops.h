// Loops side by side in one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/ColumnCut.h"

namespace ortc::kernels {

/// Whether a loop may be one of several that are computed point by point: what it sums up at a point is little.
bool isPointwise(const LoopProgram &program);
/// The cut of a loop that may be one of several whose blocks have all rows of some columns; else nothing.
std::optional<ColumnCut> joinedCut(const LoopProgram &program);
/// Warps of a block that sum up rows, 0 where a loop is computed point by point: loops with the same number can be one
/// launch. Nothing where a loop is none of several. `sharesRows`: whether blocks share out rows at all.
std::optional<int64_t> joinedWarps(const LoopProgram &program, bool sharesRows);

/// One of the loops, and which outputs of the kernel it writes: its buffers are all inputs, then these.
struct JoinedLoop {
  LoopProgram program;
  llvm::SmallVector<unsigned> outputs;
};

/// The loops of a kernel whose outputs fall into parts that have no operation in common, in the order of their first
/// outputs. A part also has all that reads an input in whose place it writes (pairs of an input and an output, as of
/// plan.in_place): loops run at the same time. Nothing and `reason` where a part is neither pointwise nor has a cut.
std::optional<std::vector<JoinedLoop>> analyzeJoined(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                                     llvm::ArrayRef<int64_t> inPlace, std::string &reason);

} // namespace ortc::kernels
