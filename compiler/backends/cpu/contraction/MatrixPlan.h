// Which contractions the matrix unit computes, or vectors of pairs of bf16, and how they are cut for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/contraction/ContractionPlan.h"

namespace ortc::cpu {

/// What multiplies packed tiles.
enum class BlockUnit {
  Tiles, ///< Instruction::MatrixUnit
  Pairs, ///< Instruction::PairProduct: of bf16 only
};

/// chunk (outer indices, rows, columns) -> outer -> block of k -> block of columns: packed columns -> block
/// of rows: packed rows -> panels.
struct MatrixPlan {
  const Architecture *architecture = nullptr; ///< whose unit it is
  BlockUnit unit = BlockUnit::Tiles;
  unsigned rowOperand = 0, laneOperand = 1; ///< the operands whose lines are rows and columns
  int64_t parts = 3;                        ///< of the numbers: one where both operands are bf16
  llvm::SmallVector<kernels::ContractionDim> outer;
  kernels::ContractionDim row, lane;
  llvm::SmallVector<kernels::ContractionDim> depthOuter; ///< k dims around `depth`, which is cut in blocks
  kernels::ContractionDim depth;
  int64_t depthBlock = 0, depthBlocks = 1; ///< of `depth`; a multiple of kTileDepth
  int64_t laneBlock = 0;                   ///< columns that are packed at a time
  /// rows that are packed at a time: all of a chunk, once, or one panel again for each block of columns
  int64_t rowBlock = 0;

  int64_t outerTotal = 1, outerPerChunk = 1, rowChunk = 0, laneChunk = 0;
  int64_t outerChunks = 1, rowChunks = 1, laneChunks = 1;

  /// Blocks of k in all; sums of one block wait in the workspace for the next.
  int64_t blocks() const;
  bool packsRowsOnce() const { return rowBlock >= std::min(rowChunk, row.size); }
  int64_t stepWords() const;
  int64_t panelWords() const;
  int64_t packedRowWords() const;
  int64_t packedLaneWords() const;
  int64_t sumElements() const;
};

/// Nothing where the target has neither unit for these numbers, operands are not contiguous along a line or along k,
/// numbers are not f32 or both bf16, or bits may not depend on the target. Blocks of k depend on the shape only: they
/// decide about the order of sums.
std::optional<MatrixPlan> planMatrix(const ContractionSpec &spec, const Target &target);

/// Whether the unit is estimated to be faster than fused multiply-adds. Depends on the shape and the unit only.
bool isFasterOnUnit(const MatrixPlan &plan);

/// Emits the kernel (MatrixContraction.cpp).
KernelInfo emitMatrixContraction(mlir::OpBuilder &builder, mlir::ModuleOp module, const ContractionSpec &spec,
                                 const MatrixPlan &plan);

} // namespace ortc::cpu
