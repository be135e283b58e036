//===- Winograd.h - 3x3 convolutions with fewer products ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// F(2x2, 3x3) of Winograd (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015): 2x2 results from
// 16 products a channel instead of 36. Source tiles of 4x4, filters and tiles of results are transformed by additions
// and halvings; between the transforms stand 16 products of matrices, one for each position of a tile. The filter
// gradient is the same algorithm with the roles of results and filter exchanged.
#pragma once

#include "compiler/codegen/conv/DenseConv.h"

namespace ortc::codegen {

/// Whether emitWinogradConv and emitWinogradFilterGrad are for this shape. Depends on the shape only, as the order of
/// sums does.
bool usesWinograd(const ConvShape &shape);

/// conv and conv_input_grad. Chunks are groups of tiles and ranges of columns. Workspace: transformed filters, tiles and
/// results of a group.
llvm::FailureOr<KernelInfo> emitWinogradConv(mlir::ModuleOp module, const ConvSpec &spec,
                                             const Target &target);
/// conv_filter_grad. A chunk owns a block of channels and a range of columns.
llvm::FailureOr<KernelInfo> emitWinogradFilterGrad(mlir::ModuleOp module, const ConvSpec &spec,
                                                   const Target &target);

/// Results of a tile along a side, and positions.
inline constexpr int64_t kTileSide = 2, kTilePositions = 16;
/// Rows of channels are whole vectors of every target.
inline constexpr int64_t kChannelUnit = 16;

/// Matrices of one element per position of a tile, in the workspace: [position][row][column].
struct PositionMatrices {
  mlir::Value buffer;
  int64_t rows = 0, pitch = 0;
  /// Elements from one position to the next: not a power of two, whose stores would meet in one set of a cache.
  int64_t step() const { return rows * pitch + 16; }
  int64_t elements() const { return kTilePositions * step(); }
};

/// Where a tile is: its first result along both dimensions.
struct TilePosition {
  mlir::Value image, row, column;
};

class WinogradEmitter : public DenseEmitter {
public:
  WinogradEmitter(mlir::ModuleOp module, const ConvSpec &spec, const Target &target, bool forward);

protected:
  using Square = llvm::SmallVector<Value, 16>;
  /// B^T d B of the 4x4 values of a source tile.
  Square transformSource(llvm::ArrayRef<Value> tile);
  /// A x A^T of 2x2 values of a gradient, the last row and column with the other sign.
  Square transformGradient(llvm::ArrayRef<Value> tile);
  /// G g G^T of 3x3 values of a filter.
  Square transformFilter(llvm::ArrayRef<Value> filter);
  /// A^T m A: 2x2 results of a tile.
  Square transformResults(llvm::ArrayRef<Value> sums);
  /// G^T m G: 3x3 values of a filter's gradient, from sums over what transformGradient gives.
  Square transformFilterSums(llvm::ArrayRef<Value> sums);

  int64_t tilesOf(int64_t d) const { return (sides.result[d] + kTileSide - 1) / kTileSide; }
  int64_t allTiles() const { return shape.batch * tilesOf(0) * tilesOf(1); }
  TilePosition positionOf(Value tile);
  /// Row `row` of `to` gets the source of `tile`, channels [first, first + count).
  void transformSourceTile(const PositionMatrices &to, Value row, Value tile, Value first, int64_t count);
  void storeSquare(const PositionMatrices &to, Value row, Value column, llvm::ArrayRef<Value> values);
  Square loadSquare(const PositionMatrices &from, Value row, Value column);
  /// The view of `matrices` at `byteOffset` of the workspace.
  void placeMatrices(PositionMatrices &matrices, int64_t byteOffset);
  /// The largest block of at most `most` channels that divides `all` and is whole vectors of every target.
  static int64_t blockOf(int64_t all, int64_t most);
  int64_t patchElements(int64_t channels) const { return kTilePositions * channels; }

  ConvSides sides;
  Value patch; ///< of a tile that reaches over the border, in the workspace

private:
  using Line = llvm::SmallVector<Value, 4>;
  /// `line` applied to the columns of a `side` x `side` square, then to the rows of what comes out.
  Square bothWays(llvm::ArrayRef<Value> square, int64_t side,
                  llvm::function_ref<Line(llvm::ArrayRef<Value>)> line);
  Value plus(Value a, Value b) { return mlir::arith::AddFOp::create(*this, a, b); }
  Value minus(Value a, Value b) { return mlir::arith::SubFOp::create(*this, a, b); }
  Value half(Value a);
};

} // namespace ortc::codegen
