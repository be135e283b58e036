// Small convolutions with fewer products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// F(2x2, 3x3) and F(2x2, 2x2) of Winograd (Lavin and Gray, "Fast algorithms for convolutional neural
// networks", 2015): 2x2 results from 16 products a channel instead of 36, and from 9 instead of 16. Source
// tiles, filters and tiles of results are transformed by additions and halvings; between the transforms stand
// products of matrices, one for each position of a tile. The filter gradient is the same algorithm with the
// roles of results and filter exchanged.
//
// Windows of stride 1 and 3x3 are those of F(2x2, 3x3). With stride 2 a window of 3 or 4 is, along a
// dimension, one of at most two taps in each of two images: the phases of the source, its even and its odd
// positions. The phases are summed as more channels; towards the input every phase of the gradient is a
// convolution of its own. Taps of phases that have one are transformed with a zero, and the position of a
// tile that holds this zero alone is left out: 25 products for 2x2 results instead of 36 with windows of
// 3x3, 36 instead of 64 with 4x4.
#pragma once

#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

namespace ortc::cpu {

/// Matrices of one element per position of a tile, in the workspace: [position][row][column].
struct PositionMatrices {
  mlir::Value buffer;
  int64_t positions = 0, rows = 0, pitch = 0;
  /// Elements from one position to the next: not a power of two, whose stores would meet in one set of a cache.
  int64_t step() const { return rows * pitch + 16; }
  int64_t elements() const { return positions * step(); }
};

/// Where a tile is: its first result along both dimensions.
struct TilePosition {
  mlir::Value image, row, column;
};

/// A phase of the stride: remainders of positions along both dimensions; of source positions behind the padding, or, in
/// the input gradient, of positions of the result.
struct WinogradPhase {
  mlir::Value number; ///< of all phases
  mlir::Value remainders[2];
};

class WinogradEmitter : public DenseEmitter {
public:
  WinogradEmitter(mlir::ModuleOp module, const ConvSpec &spec, const Target &target, bool forward);

protected:
  using Square = llvm::SmallVector<Value, 16>;
  /// Sides of what these take and give, with t taps: B^T d B of a source tile, t + 1 to t + 1.
  Square transformSource(llvm::ArrayRef<Value> tile);
  /// A x A^T of a gradient, 2 to t + 1; with three taps the last row and column with the other sign.
  Square transformGradient(llvm::ArrayRef<Value> tile);
  /// G g G^T of a filter, t to t + 1.
  Square transformFilter(llvm::ArrayRef<Value> filter);
  /// A^T m A: the results of a tile, t + 1 to 2.
  Square transformResults(llvm::ArrayRef<Value> sums);
  /// G^T m G: a filter's gradient, t + 1 to t, from sums over what transformGradient gives.
  Square transformFilterSums(llvm::ArrayRef<Value> sums);

  int64_t side() const { return taps + 1; }
  int64_t positions() const { return side() * side(); }
  int64_t phases() const { return stride * stride; }
  WinogradPhase phaseOf(Value number) { return {number, {div(number, stride), rem(number, stride)}}; }
  /// Whether some phases have a tap less than others.
  bool hasShortPhases(int64_t d) const { return shape.filter[d] % stride != 0; }
  /// The position of tap 0 of a phase in the window; the others follow in steps of the stride. Taps of short
  /// phases may lie outside.
  Value firstTap(int64_t d, const WinogradPhase &phase);
  /// The position of tap `tap` of a phase in the window, or of the nearest one inside; and whether it is
  /// inside: null where it always is.
  std::pair<Value, Value> windowPosition(int64_t d, const WinogradPhase &phase, Value tap);
  /// `a` and `b`, either null for true.
  Value both(Value a, Value b);

  /// Tiles along a dimension: of results, in the input gradient of those of a phase.
  int64_t tilesOf(int64_t d) const;
  int64_t allTiles() const { return shape.batch * tilesOf(0) * tilesOf(1); }
  TilePosition positionOf(Value tile);
  /// Row `row` of `to` gets the source of `tile` in a phase, channels [first, first + count), from column `column` on.
  void transformSourceTile(const PositionMatrices &to, Value row, Value column, Value tile,
                           const WinogradPhase &phase, Value first, int64_t count);
  void storeSquare(const PositionMatrices &to, Value row, Value column, llvm::ArrayRef<Value> values);
  Square loadSquare(const PositionMatrices &from, Value row, Value column);
  /// The view of `matrices` at `byteOffset` of the workspace.
  void placeMatrices(PositionMatrices &matrices, int64_t byteOffset);
  /// The largest block of at most `most` channels that divides `all` and is whole vectors of every target.
  static int64_t blockOf(int64_t all, int64_t most);
  int64_t patchElements(int64_t channels) const { return positions() * channels; }

  kernels::ConvSides sides;
  int64_t stride, taps; ///< along a side; taps: of a transformed filter
  Value patch;          ///< of a tile that reaches over the border, in the workspace

private:
  using Line = llvm::SmallVector<Value, 4>;
  /// `line` applied to the columns of a square, then to the rows of what comes out.
  Square bothWays(llvm::ArrayRef<Value> square, llvm::function_ref<Line(llvm::ArrayRef<Value>)> line);
  Value plus(Value a, Value b) { return mlir::arith::AddFOp::create(*this, a, b); }
  Value minus(Value a, Value b) { return mlir::arith::SubFOp::create(*this, a, b); }
  Value half(Value a);
};

} // namespace ortc::cpu
