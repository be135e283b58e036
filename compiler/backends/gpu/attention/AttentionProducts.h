// The products of a block of attention: scores, and what is mixed by them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/attention/AttentionPlaces.h"
#include "compiler/backends/gpu/product/BlockSums.h"

namespace ortc::gpu {

/// Keys whose scores are in registers at a time: those of a block of sums that are promoted.
inline constexpr int64_t kBlockKeys = kPromotedDepth;

/// Sums of a lane are in the values that instructions have; elements are those sums as numbers, one each.
class AttentionProducts {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  using Numbers = llvm::ArrayRef<unsigned>; ///< of scores, of mixes

  AttentionProducts(ThreadBuilder &b, const AttentionForm &form, const AttentionLayout &layout,
                    AttentionPlaces &places)
      : b(b), form(form), layout(layout), places(places), core(*layout.scores.front().rows.plan.core) {}

  /// Fills the tiles of rows, which stay for all keys.
  void loadRows();
  /// Fills the tiles that some scores and some mixes need of a step, from `firstKey` on.
  void loadKeys(Numbers scores, Numbers mixes, Value firstKey);

  /// Elements that a lane has in a block of keys.
  size_t scoresOfLane() const { return kBlockKeys / core.pieceColumns() * core.sumsOfLane(); }
  /// Those of block number `block` of the step, by product; none of those that are not needed.
  llvm::SmallVector<Values, 2> makeScores(Numbers needed, int64_t block);
  /// The lane's row, and the column from the lane's first one on, of an element.
  int64_t laneRowOf(int64_t element) const { return core.rowOf(element % core.sumsOfLane()); }
  int64_t columnOf(int64_t element) const {
    return element / core.sumsOfLane() * core.pieceColumns() + core.columnOf(element % core.sumsOfLane());
  }

  /// Values that hold the sums of a mix.
  size_t mixedValues(unsigned mix) const { return valuesFor(layout.mixed[mix].plan.tile.columns); }
  Values mixedZeros(unsigned mix) { return zeros(layout.mixed[mix].plan.tile.columns); }
  /// Adds the products of a block of keys, by their mixed scores.
  void addMixed(unsigned mix, Values scores, int64_t block, llvm::MutableArrayRef<Value> sums);
  /// Multiplies sums by the factors of the lane's rows.
  void scale(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> factors);
  Values elementsOf(llvm::ArrayRef<Value> sums);

private:
  size_t valuesFor(int64_t columns) const { return columns / core.pieceColumns() * core.sumValues; }
  Values zeros(int64_t columns);
  Values multiplyScores(const AttentionLayout::Scores &tiles, int64_t block);
  Value takeWord(Value &low, Value &high, bool isLast);

  ThreadBuilder &b;
  const AttentionForm &form;
  const AttentionLayout &layout;
  AttentionPlaces &places;
  const MatrixCore &core;
};

} // namespace ortc::gpu
