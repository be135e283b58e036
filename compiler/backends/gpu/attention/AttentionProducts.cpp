// The products of a block of attention: scores, and what is mixed by them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/attention/AttentionProducts.h"

#include "compiler/backends/emit/StorageConversion.h"

#include <deque>

using namespace mlir;

namespace ortc::gpu {

void AttentionProducts::loadRows() {
  for (const AttentionLayout::Scores &tiles : layout.scores) {
    SharedTile tile = places.tileOf(tiles.rows, places.getFirstRow());
    StridedAccess access = places.accessOf(tiles.rows);
    tile.store(tile.load(access, b.index(0)), b.index(0));
  }
}

void AttentionProducts::loadKeys(Numbers scores, Numbers mixes, Value firstKey) {
  struct Filled {
    const AttentionTile &of;
    SharedTile tile;
    Value start;
    Values units;
  };
  std::deque<Filled> filled;
  auto load = [&](Filled &one) {
    StridedAccess access = places.accessOf(one.of);
    one.units = one.tile.load(access, one.start);
  };
  auto add = [&](const AttentionTile &tile, Value firstIndex, Value start) {
    Filled &one = filled.emplace_back(Filled{tile, places.tileOf(tile, firstIndex), start, {}});
    if (!core.hasFewRegisters)
      load(one);
  };
  for (unsigned i : scores)
    add(layout.scores[i].keys, firstKey, b.index(0));
  for (unsigned mix : mixes)
    if (!layout.mixed[mix].isCopyOfOther)
      add(layout.mixed[mix], b.index(0), firstKey);
  b.barrier(); // others may still read what is written over
  for (Filled &one : filled) {
    if (core.hasFewRegisters) {
      core.separate(b);
      load(one);
    }
    one.tile.store(one.units, b.index(0));
  }
  b.barrier();
}

AttentionProducts::Values AttentionProducts::zeros(int64_t columns) {
  Values sums;
  while (sums.size() < valuesFor(columns))
    llvm::append_range(sums, core.zeros(b));
  return sums;
}

AttentionProducts::Values AttentionProducts::elementsOf(ArrayRef<Value> sums) {
  Values elements;
  for (; !sums.empty(); sums = sums.drop_front(core.sumValues))
    llvm::append_range(elements, core.elementsOf(b, sums.take_front(core.sumValues)));
  return elements;
}

void AttentionProducts::scale(MutableArrayRef<Value> sums, ArrayRef<Value> factors) {
  for (; !sums.empty(); sums = sums.drop_front(core.sumValues)) {
    SmallVector<Value> elements = core.elementsOf(b, ValueRange(sums.take_front(core.sumValues)));
    for (auto [number, element] : llvm::enumerate(elements))
      element = arith::MulFOp::create(b, element, factors[core.rowOf(static_cast<int64_t>(number))]);
    llvm::copy(core.sumsOf(b, elements), sums.begin());
  }
}

SmallVector<AttentionProducts::Values, 2> AttentionProducts::makeScores(Numbers needed, int64_t block) {
  SmallVector<Values, 2> made(form.scores.size());
  for (unsigned i : needed) {
    if (i != needed.front() && !layout.scores[i].rows.plan.format.isExact())
      b.warpBarrier(); // or ptxas loads fragments of both products at once, and has no registers for them
    made[i] = elementsOf(multiplyScores(layout.scores[i], block));
  }
  return made;
}

/// The sums of a block of keys.
AttentionProducts::Values AttentionProducts::multiplyScores(const AttentionLayout::Scores &tiles,
                                                            int64_t block) {
  SharedTile rowTile = places.tileOf(tiles.rows, places.getFirstRow()),
             keyTile = places.tileOf(tiles.keys, b.index(0));
  rowTile.prepareFragments(places.getWarpRow());
  keyTile.prepareFragments(b.index(0));
  Value rowPlace = rowTile.placeOf(b.index(0)), keyPlace = keyTile.placeOf(b.index(0));
  const MatrixPlan &plan = tiles.rows.plan;
  Values sums = zeros(kBlockKeys);
  for (int64_t first = 0; first < plan.tile.depth / kFragment; first += kBlockSteps) {
    addBlock(b, plan, loadBlock(rowTile, rowPlace, 0, first, plan.format.rowParts), keyTile, keyPlace,
             block * kBlockKeys / kFragment, first, sums);
  }
  return sums;
}

/// Two neighbours of a row as a register: the next parts of f32 numbers (`takeParts`), others as they are stored.
Value AttentionProducts::takeWord(Value &low, Value &high, bool isLast) {
  if (low.getType().isF32())
    return takeParts(b, core, low, high, isLast);
  Value upper = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, b.getI32Type(), high), b.constant32(16));
  return arith::OrIOp::create(b, upper, arith::ExtUIOp::create(b, b.getI32Type(), low));
}

void AttentionProducts::addMixed(unsigned mix, Values scores, int64_t block, MutableArrayRef<Value> sums) {
  const AttentionTile &tile = layout.mixed[mix];
  SharedTile columns = places.tileOf(tile, b.index(0));
  columns.prepareFragments(b.index(0));
  Value place = columns.placeOf(b.index(0));
  const MatrixFormat &format = tile.plan.format;
  SmallVector<Values> ofRow;
  const size_t inFragment = scores.size() / kBlockSteps;
  const bool isFull = format.number == MatrixNumber::f32;
  if (isFull)
    for (Value &score : scores)
      score = score.getType().isF32() ? score : extendToF32(b, b.getLoc(), score, tile.shape.row.narrow);
  for (int64_t part = 0; part < format.rowParts; ++part)
    for (int64_t fragment = 0; fragment < kBlockSteps; ++fragment) {
      auto numbers = MutableArrayRef<Value>(scores).slice(fragment * inFragment, inFragment);
      Values words;
      if (isFull)
        words.assign(numbers.begin(), numbers.end());
      for (size_t i = 0; !isFull && i < numbers.size(); i += 2)
        words.push_back(takeWord(numbers[i], numbers[i + 1], part + 1 == format.rowParts));
      ofRow.push_back(core.rowsOf(b, places.getLane(), format.number, words));
    }
  addBlock(b, tile.plan, ofRow, columns, place, 0, block * kBlockSteps, sums);
}

} // namespace ortc::gpu
