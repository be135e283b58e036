// Products on a matrix unit that multiplies bf16. Every f32 number is the exact sum of three bf16 numbers, and six of
// the nine products of their parts make a product as exact as f32's own (docs/decisions/0009-matrix-unit.md). Operands
// that are bf16 have one part, and one product. An Architecture emits the products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/IndexBuilder.h"

namespace ortc::cpu {

/// A tile of an operand: 16 lines (rows of A, columns of B) by 32 of k, once for each part of the numbers.
/// Packed, a tile is 16 vectors of 16 words, each word two bf16 numbers: k and k + 16.
inline constexpr int64_t kTileLines = 16, kTileDepth = 32, kTileWords = 256;
/// Parts of an f32 number.
inline constexpr int64_t kFloatParts = 3;
/// Two lines of tiles of an operand, which a step of the product reads together, in all parts.
inline constexpr int64_t kPanelLines = 2 * kTileLines;
constexpr int64_t stepWordsOf(int64_t parts) { return parts * 2 * kTileWords; }
/// Sums of a block of 2 x 2 tiles.
inline constexpr int64_t kBlockElements = kPanelLines * kPanelLines;

/// Where the operand of a packed panel lies, f32 or, in one part, bf16 stored as i16.
struct SplitSource {
  mlir::Value buffer;
  int64_t parts = kFloatParts;
  emit::Offset at;                 ///< of the first line and k
  int64_t lineStride, depthStride; ///< one of them is 1
  mlir::Value lines, depth;        ///< how many there are, as indices: beyond them the tiles are zero
  bool isColumns; ///< a tile's vector is a pair of k over 16 columns (B), not a row over 16 pairs (A)
};

/// Copies panel after panel, each `steps` steps of so many words, to the beginning of `packed` (words, i32); a
/// panel begins
/// `panelWords` behind the one before. `panels` and `steps` are indices.
void emitSplitPanels(mlir::OpBuilder &builder, mlir::Location loc, const SplitSource &source,
                     mlir::Value packed, mlir::Value panels, mlir::Value steps, int64_t panelWords);

/// Rows that will be written when a block is finished: its first element in a buffer, and bytes from row to row.
struct WrittenRows {
  mlir::Value buffer;
  emit::Offset at;
  int64_t elementBytes = 4, pitchBytes = 0;
};

/// One block of sums, for Architecture::emitBlockProduct: `rowTiles` x `columnTiles` tiles of 16 x 16, one or two each.
struct BlockProduct {
  int64_t parts = kFloatParts; ///< of both operands: three, or one
  int64_t rowTiles = 2, columnTiles = 2;
  mlir::Value rows; ///< packed words
  emit::Offset rowsAt;
  mlir::Value columns;
  emit::Offset columnsAt;
  mlir::Value steps; ///< at least one
  mlir::Value sums;  ///< f32; tile (i, j) is 256 elements from 256 * (2 i + j), row by row
  emit::Offset sumsAt;
  mlir::Value isFirst; ///< i1: the sums begin with zero
  /// Packed rows that are fetched into the second-level cache meanwhile, so many lines of 64 bytes a step.
  emit::Offset nextRowsAt;
  int64_t nextLines = 0;
  /// Rows that the epilogue is going to write, fetched meanwhile: so many a step.
  llvm::SmallVector<WrittenRows> written;
  int64_t writtenRows = 0;
};

} // namespace ortc::cpu
