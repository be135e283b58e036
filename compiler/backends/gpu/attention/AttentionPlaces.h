// Where a block of attention is, and a lane of it: head, rows, keys, and their elements in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/gpu/attention/AttentionTiles.h"
#include "compiler/backends/gpu/attention/KeyRange.h"

namespace ortc::gpu {

/// A position is one of the loop program, row-major over its dims. A lane has scores of `MatrixCore::rowsOfLane` rows,
/// and `laneRow` is the number of one of those: NVIDIA's lanes have two, AMD's one.
class AttentionPlaces {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// `arguments`: buffers of the kernel. `space`: shared memory for the tiles.
  AttentionPlaces(ThreadBuilder &b, const AttentionForm &form, const AttentionLayout &layout,
                  const KeyRange &range, mlir::ValueRange arguments, Value space)
      : b(b), form(form), layout(layout), range(range), arguments(arguments),
        core(*layout.scores.front().rows.plan.core), space(space), dimSteps(form.program.steps()) {}

  /// Comes first, and again where nothing that follows from these numbers should be kept in registers.
  void place(Value threadNumber, Value block);

  /// All keys of the block, of one group after another: body(firstKey, carried).
  Values overKeys(Values carried, llvm::function_ref<Values(Value, mlir::ValueRange)> body);

  Value getLane() const { return lane; }
  Value getWarpRow() const { return warpRow; }   ///< the first one of the warp, within the block
  Value getFirstRow() const { return firstRow; } ///< of the block
  Value getRow(int64_t laneRow) const { return rows[laneRow]; }
  /// The position of the head, row 0 and key 0.
  Value getPosition() const { return position; }
  /// The key, or the last one if it is beyond that.
  Value withinKeys(Value key) { return within(key, form.key, layout.keys); }

  /// Lets an emitter compute at a row of the lane and a key.
  void setIndices(ElementEmitter &emitter, int64_t laneRow, Value key);
  /// The dims that change along the keys, a bit each.
  uint64_t innerDims() const;

  /// The first element of a head in a buffer. `at`: its position.
  Value baseOf(llvm::ArrayRef<AttentionForm::ScoreDim> dims, unsigned operand, int64_t offset, Value at);
  SharedTile tileOf(const AttentionTile &tile, Value firstIndex);
  StridedAccess accessOf(const AttentionTile &tile);

private:
  void placeLane(Value thread);
  Values withLaneAgain(llvm::function_ref<Values()> body);
  Value positionOf(llvm::ArrayRef<AttentionForm::Axis> axes, Value number);
  void setPosition(Value value);
  int64_t moveOf(size_t d, const AttentionForm::Axis &axis) const;
  Value within(Value index, const AttentionForm::Axis &axis, int64_t tile);
  Value positionIn(const AttentionForm::Scores &scores);

  ThreadBuilder &b;
  const AttentionForm &form;
  const AttentionLayout &layout;
  const KeyRange &range;
  mlir::ValueRange arguments;
  const MatrixCore &core;
  Value space;
  llvm::SmallVector<int64_t> dimSteps; ///< positions from an index of a dim to the next
  IndexRange keys;                     ///< that the block needs
  Value lane, warpRow, firstRow;
  Value position;
  Values starts; ///< indices of the dims at `position`
  Values rows;   ///< of the lane
};

} // namespace ortc::gpu
