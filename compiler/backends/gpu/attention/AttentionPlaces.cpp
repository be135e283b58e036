// Where a block of attention is, and a lane of it: head, rows, keys, and their elements in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/attention/AttentionPlaces.h"

#include "compiler/backends/gpu/KernelBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

void AttentionPlaces::place(Value threadNumber, Value block) {
  // Blocks whose tiles see most keys come first, for all heads.
  int64_t rowTiles = llvm::divideCeilSigned(form.row.size, layout.rows);
  bool isLastFirst =
      range.endOf(rowTiles - 1) - range.firstOf(rowTiles - 1) > range.endOf(0) - range.firstOf(0);
  Value tile = b.div(block, form.products());
  if (isLastFirst)
    tile = b.sub(b.index(rowTiles - 1), tile);
  firstRow = b.mul(tile, layout.rows);
  keys = {b.index(0), b.index(form.key.size)};
  if (!range.isWhole()) {
    auto keyAt = [&](int64_t ofFirstTile) {
      Value step = b.add(b.mul(tile, range.slope), ofFirstTile);
      return b.mul(b.minimum(b.maximum(step, b.index(0)), b.index(range.steps)), layout.keys);
    };
    keys = {keyAt(range.first), b.minimum(keyAt(range.end), keys.end)};
  }
  Value head = positionOf(form.others, b.rem(block, form.products()));
  setPosition(head);
  placeLane(threadNumber);
}

void AttentionPlaces::placeLane(Value thread) {
  lane = b.rem(thread, core.lanes);
  warpRow = b.mul(b.div(thread, core.lanes), kFragment);
  rows.clear();
  for (int64_t laneRow = 0; laneRow < core.rowsOfLane(); ++laneRow)
    rows.push_back(b.add(firstRow, b.add(b.add(warpRow, core.sumRowOf(b, lane)), laneRow * core.rowStep)));
}

/// Where registers are few, what follows from the number of a lane is computed anew in each step, not kept.
AttentionPlaces::Values AttentionPlaces::withLaneAgain(llvm::function_ref<Values()> body) {
  if (!core.hasFewRegisters)
    return body();
  ThreadBuilder::ThreadAgain scope(b);
  Value oldLane = lane, oldWarpRow = warpRow;
  Values oldRows = rows;
  placeLane(b.thread());
  Values result = body();
  lane = oldLane, warpRow = oldWarpRow, rows = oldRows;
  return result;
}

/// The position of element `number` of some axes.
Value AttentionPlaces::positionOf(ArrayRef<AttentionForm::Axis> axes, Value number) {
  SmallVector<int64_t> sizes;
  for (const AttentionForm::Axis &axis : axes)
    sizes.push_back(axis.size);
  Value sum = b.index(0);
  if (!sizes.empty())
    for (auto [axis, digit] : llvm::zip_equal(axes, delinearize(b, number, sizes)))
      sum = b.add(sum, b.mul(digit, axis.step));
  return sum;
}

void AttentionPlaces::setPosition(Value value) {
  position = value;
  starts.clear();
  for (auto [dim, step] : llvm::zip_equal(form.program.dims, dimSteps))
    starts.push_back(b.rem(b.div(position, step), dim.size));
}

AttentionPlaces::Values AttentionPlaces::overKeys(Values carried,
                                                  llvm::function_ref<Values(Value, ValueRange)> body) {
  Value head = position;
  Values result =
      b.fold({b.index(0), b.index(form.groupCount())}, 1, carried, [&](Value group, ValueRange now) {
        setPosition(b.add(head, positionOf(form.groups, group)));
        return b.fold(keys, layout.keys, now, [&](Value firstKey, ValueRange carriedOn) {
          return withLaneAgain([&] { return body(firstKey, carriedOn); });
        });
      });
  setPosition(head);
  return result;
}

/// How far an index of a dim moves along an axis; 0: it does not.
int64_t AttentionPlaces::moveOf(size_t d, const AttentionForm::Axis &axis) const {
  bool isThere = dimSteps[d] <= axis.step && axis.step < dimSteps[d] * form.program.dims[d].size;
  return isThere ? axis.step / dimSteps[d] : 0;
}

uint64_t AttentionPlaces::innerDims() const {
  uint64_t inner = 0;
  SmallVector<AttentionForm::Axis> axes(form.groups);
  axes.push_back(form.key);
  for (size_t d = 0; d < dimSteps.size(); ++d)
    if (llvm::any_of(axes, [&](const AttentionForm::Axis &axis) { return moveOf(d, axis) != 0; }))
      inner |= uint64_t(1) << d;
  return inner;
}

/// Rows and keys beyond the last one count as the last one.
Value AttentionPlaces::within(Value index, const AttentionForm::Axis &axis, int64_t tile) {
  return axis.size % tile == 0 ? index : b.minimum(index, b.index(axis.size - 1));
}

void AttentionPlaces::setIndices(ElementEmitter &emitter, int64_t laneRow, Value key) {
  Value row = within(rows[laneRow], form.row, layout.rows);
  for (size_t d = 0; d < dimSteps.size(); ++d) {
    Value index = b.add(starts[d], b.mul(row, moveOf(d, form.row)));
    emitter.setIndex(d, b.add(index, b.mul(key, moveOf(d, form.key))));
  }
}

Value AttentionPlaces::baseOf(ArrayRef<AttentionForm::ScoreDim> dims, unsigned operand, int64_t offset,
                              Value at) {
  Value base = b.index(offset);
  for (const AttentionForm::ScoreDim &dim : dims)
    if (int64_t stride = dim.dim.strides[operand]; stride != 0)
      base = b.add(base, b.mul(b.rem(b.div(at, dim.step), dim.dim.size), stride));
  return base;
}

/// The position of the head among the scores of a product.
Value AttentionPlaces::positionIn(const AttentionForm::Scores &scores) {
  const LoopNode &load = *llvm::find_if(form.program.nodes, [&](const LoopNode &node) {
    return node.kind == LoopNode::load && node.buffer == scores.buffer;
  });
  Value at = b.index(0);
  for (auto [start, scale] : llvm::zip_equal(starts, load.at.scales))
    at = b.add(at, b.mul(start, scale));
  return at;
}

SharedTile AttentionPlaces::tileOf(const AttentionTile &tile, Value firstIndex) {
  return SharedTile(b, tile.shape, tile.plan, tile.side, b.advance(space, tile.place), firstIndex);
}

StridedAccess AttentionPlaces::accessOf(const AttentionTile &tile) {
  Value at = position;
  for (auto [scores, tiles] : llvm::zip_equal(form.scores, layout.scores))
    if (&tile == &tiles.rows || &tile == &tiles.keys)
      at = positionIn(scores);
  return {arguments[tile.buffer], baseOf(tile.dims, tile.operand, tile.offset, at), tile.along, tile.depth};
}

} // namespace ortc::gpu
