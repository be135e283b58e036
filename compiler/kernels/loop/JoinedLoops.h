// Loops side by side in one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::kernels {

/// Whether a loop may be one of several: what it sums up at a point is little, so that nobody computes it otherwise
/// than point by point.
bool canJoin(const LoopProgram &program);

/// One of the loops, and which outputs of the kernel it writes: its buffers are all inputs, then these.
struct JoinedLoop {
  LoopProgram program;
  llvm::SmallVector<unsigned> outputs;
};

/// The loops of a kernel whose outputs fall into parts that have no operation in common, in the order of their first
/// outputs. A part also has all that reads an input in whose place it writes (pairs of an input and an output, as of
/// plan.in_place): loops run at the same time. Nothing and `reason` where a part is no loop that canJoin().
std::optional<std::vector<JoinedLoop>> analyzeJoined(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                                     llvm::ArrayRef<int64_t> inPlace, std::string &reason);

} // namespace ortc::kernels
