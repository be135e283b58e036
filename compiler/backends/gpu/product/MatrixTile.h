// How a product is cut for tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor cores multiply numbers of 16 bits. Operands that are stored so (bf16, f16; integers of 8 bits are exact in
// bf16) are multiplied as they are. A f32 number is the sum of three bf16 numbers, except for 2^-24 of itself. Such
// parts have nine products; the six largest are kept, the others are below the last bit. A tensor core truncates its
// sums, so the sum of f32 numbers begins anew every kPromotedDepth steps and is added up in f32: it is then closer than
// a chain of fused multiply-adds (docs/decisions/0060-matrix-core.md). Where the user asks for TF32, a f32 number is
// rounded to 11 bits instead, and multiplied once (docs/decisions/0061-tf32.md).
//
// The order of a sum depends on the shape only: parts of the depth, blocks of kPromotedDepth within them, products of
// parts from the smallest to the largest within those, each along the depth.
#pragma once

#include "compiler/backends/gpu/product/MatrixCore.h"

#include <optional>

namespace ortc::gpu {

/// Steps after which sums of f32 numbers leave the tensor core.
inline constexpr int64_t kPromotedDepth = 32;
/// The numbers that a core multiplies, and into how many of them a number of each side is split.
struct MatrixFormat {
  MatrixNumber number = MatrixNumber::bf16;
  int64_t rowParts = 1, columnParts = 1; ///< 1 or kWideParts: of a number of each side

  int64_t partsOf(Side side) const { return side == Side::row ? rowParts : columnParts; }
  bool isExact() const { return rowParts == 1 && columnParts == 1; }
  /// The products that count, as parts of a row and a column, from the smallest to the largest.
  llvm::SmallVector<std::pair<int64_t, int64_t>> pairs() const;
};

/// A block makes `rows` x `columns` results, each of its warps `warpRows` x `warpColumns` of them.
struct MatrixTile {
  int64_t rows = 128, columns = 128, warpRows = 64, warpColumns = 32;
  int64_t depth = 32;   ///< of a stage
  int64_t stages = 2;   ///< of shared memory
  bool isAsync = false; ///< stages are filled by copies that need no registers
  /// Products are those of groups of warps (wgmma). Warps lie in a column and take the tile's rows in turn, 16 each.
  bool isGrouped = false;

  int64_t extentOf(Side side) const { return side == Side::row ? rows : columns; }
  int64_t warpExtentOf(Side side) const { return side == Side::row ? warpRows : warpColumns; }
  int64_t warps() const { return rows / warpRows * (columns / warpColumns); }
  /// `lanes`: of a warp.
  int64_t threads(int64_t lanes) const { return warps() * lanes; }
  /// Bytes of a side in one stage, with all parts of its numbers; of both sides.
  int64_t sideBytes(const MatrixFormat &format, Side side) const {
    return extentOf(side) * depth * format.partsOf(side) * bytesOf(format.number);
  }
  int64_t stageBytes(const MatrixFormat &format) const {
    return sideBytes(format, Side::row) + sideBytes(format, Side::column);
  }
};

struct MatrixPlan {
  const MatrixCore *core = nullptr;
  MatrixFormat format;
  MatrixTile tile;
  /// Whether numbers that lie across the depth in memory do so in shared memory; else they are transposed on their way.
  bool readsAcross = false;
  int64_t parts = 1;    ///< of the depth, which depend on the shape and on what is stored only
  int64_t resident = 1; ///< blocks for which registers suffice on a multiprocessor
  double cycles = 0;    ///< `estimateCycles`

  int64_t threads() const { return tile.threads(core->lanes); }
  int64_t sideBytes(Side side) const { return tile.sideBytes(format, side); }
  int64_t stageBytes() const { return tile.stageBytes(format); }
};

/// How the numbers of a product of f32 sums are multiplied: on tensor cores, and on those of a core.
MatrixFormat formatOf(const ProductShape &shape);
MatrixFormat formatOf(const ProductShape &shape, const MatrixCore &core);

/// Nothing where a product is not for tensor cores: it is small, of f64, or the processor has none that are known.
/// `usesTf32`: f32 numbers are rounded to TF32, where the processor has such products.
std::optional<MatrixPlan> planMatrix(const ProductShape &shape, const Processor &processor, bool usesTf32);

/// The tiles of products of groups.
llvm::SmallVector<MatrixTile> listGroupTiles();

/// Parts of the depth are multiples of so many steps, for tensor cores.
inline constexpr int64_t kMatrixPartUnit = 64;

} // namespace ortc::gpu
