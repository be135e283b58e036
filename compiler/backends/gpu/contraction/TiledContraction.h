// Contractions tile by tile: operands go through shared memory, sums stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/Epilogue.h"
#include "compiler/backends/gpu/LaunchFunction.h"
#include "compiler/kernels/contraction/ContractionShape.h"

namespace ortc::gpu {

/// How a contraction is cut. A block of kTileThreads threads makes `rows` x `columns` results.
struct ContractionTile {
  int64_t rows = 64, columns = 64, depth = 16;
};

/// The tile for these dims, or nothing where results are so few in a row or a column that a thread each does as well.
std::optional<ContractionTile> chooseTile(const ContractionShape &shape, const ContractionAxes &axes);

/// What is done with a sum: null stores it as operand 2.
struct ContractionJob {
  const ContractionShape &shape;
  const ContractionAxes &axes;
  Epilogue epilogue;
  MathOptions options;
};

void emitTiled(KernelBuilder &kernel, const ContractionJob &job, const ContractionTile &tile);

} // namespace ortc::gpu
