// How the work of a loop program is cut.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/kernels/SumOrder.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::cpu {

/// Streamed rows fetch so many rows ahead.
inline constexpr int64_t kStreamedRowsAhead = 2;

/// Rows and columns of a tile that is transposed in registers.
inline constexpr int64_t kTile = 16;

/// How the work of a loop program is cut.
struct LoopPlan {
  int64_t width = 1;  ///< lanes
  int64_t unroll = 1; ///< vectors evaluated side by side
  /// extent of the lane dimension in a unit of work; a multiple of width * unroll, or all of it
  int64_t block = 1;
  int64_t blocks = 1; ///< blocks along the lane dimension (1 when it is reduced)
  int64_t units = 1;  ///< parallel positions without the lane dimension, times blocks
  int64_t unitsPerChunk = 1;
  /// The dimension along which loads are contiguous that are strided along the lanes: a unit is then a run of
  /// tileRows indices of it, and tiles of kTile x kTile elements are transposed in registers. -1: none.
  int tileDim = -1;
  int64_t tileRows = kTile; ///< a multiple of kTile: neighbouring cache lines, and pages, are used soon
  llvm::SmallVector<unsigned> tiled; ///< those loads
  /// The dimensions of units, outermost first: parallel ones but the lanes' and the tiles'.
  llvm::SmallVector<unsigned> order;
  bool blocksOutermost = false; ///< otherwise they are innermost
  int64_t chunks = 1;
  /// Where the totals of the first pass's reductions are in the worker's workspace, in bytes, when it reads rows as a
  /// stream: those over all reduced dimensions, over all but the outermost one, and so on, then those over a block of
  /// the innermost one.
  llvm::SmallVector<int64_t> totals;
  /// Where the worker's workspace has the lanes' sums of each reduction along the lanes, in bytes: code is then one for
  /// all lanes. Empty: they are in registers.
  llvm::SmallVector<int64_t> laneSums;
  /// Nodes kept in the worker's workspace between the passes over a row.
  llvm::SmallVector<unsigned> kept;
  llvm::SmallVector<int64_t> keptOffset; ///< bytes
  llvm::SmallVector<unsigned> keptPass;  ///< the pass that computes it
  int64_t workspaceBytes = 0;
  /// The first pass over a row, of lanes that are reduced, fetches the next row: later ones compute too long for the
  /// processor to look so far ahead.
  bool fetchesRows = false;
};

LoopPlan planLoops(const kernels::LoopProgram &program, const Target &target);

} // namespace ortc::cpu
