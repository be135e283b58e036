// What a block of attention keeps in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/attention/AttentionTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

/// Steps of the depth in a tile are whole blocks of sums that are promoted.
static int64_t tileExtent(int64_t size) {
  return std::max<int64_t>(llvm::PowerOf2Ceil(size), kPromotedDepth);
}

static OperandLayout layoutOf(const AttentionTile &tile, int64_t size, int64_t depthSize, Type narrow,
                              Type element, int64_t alignment) {
  OperandLayout layout;
  layout.narrow = narrow;
  layout.isAlongDepth = tile.depth == 1 && tile.along != 1;
  if ((layout.isAlongDepth ? tile.depth : tile.along) != 1)
    return layout;
  SmallVector<int64_t> strides{tile.offset, layout.isAlongDepth ? depthSize : size,
                               layout.isAlongDepth ? tile.along : tile.depth};
  for (const AttentionForm::ScoreDim &dim : tile.dims)
    if (dim.dim.strides[tile.operand] != tile.along)
      strides.push_back(dim.dim.strides[tile.operand]);
  layout.run = longestRun(strides, (narrow ? narrow : element).getIntOrFloatBitWidth(), alignment);
  return layout;
}

static AttentionTile tileOfScores(const AttentionForm &form, const AttentionForm::Scores &scores, bool isRow,
                                  int64_t keys, const KernelBuilder &kernel) {
  AttentionTile tile;
  tile.side = isRow ? Side::row : Side::column;
  tile.operand = isRow ? scores.rowOperand : 1 - scores.rowOperand;
  const ContractionOperand &operand = scores.shape.operands[tile.operand];
  tile.buffer = operand.buffer;
  tile.offset = operand.offset;
  tile.along = isRow ? scores.rowStride : scores.keyStride;
  tile.depth = scores.depth.strides[tile.operand];
  tile.dims = scores.dims;
  tile.shape = {1, form.row.size, form.key.size, scores.depth.size, scores.shape.accumulatorType};
  tile.shape.row.narrow = scores.shape.narrow(scores.rowOperand);
  tile.shape.column.narrow = scores.shape.narrow(1 - scores.rowOperand);
  OperandLayout &layout = isRow ? tile.shape.row : tile.shape.column;
  layout = layoutOf(tile, isRow ? form.row.size : form.key.size, scores.depth.size, layout.narrow,
                    scores.shape.accumulatorType, kernel.alignmentOf(tile.buffer));
  tile.plan.core = findMatrixCore(kernel.getProcessor());
  tile.plan.format = formatOf(tile.shape);
  tile.plan.tile = {kAttentionRows, keys, kFragment, keys, tileExtent(scores.depth.size)};
  return tile;
}

static AttentionTile tileOfMixed(const AttentionForm &form, const AttentionForm::Mix &mix, int64_t keys,
                                 const KernelBuilder &kernel) {
  AttentionTile tile;
  const ContractionShape &shape = mix.form.shape;
  tile.side = Side::column;
  tile.operand = mix.mixedOperand();
  const ContractionOperand &operand = shape.operands[tile.operand];
  tile.buffer = operand.buffer;
  tile.offset = operand.offset;
  tile.along = mix.column.strides[tile.operand];
  tile.depth = mix.key.strides[tile.operand];
  tile.dims = mix.dims;
  tile.shape = {1, form.row.size, mix.column.size, form.key.size, shape.accumulatorType};
  tile.shape.row.narrow = shape.narrow(mix.scoreOperand);
  tile.shape.column.narrow = shape.narrow(tile.operand);
  tile.shape.column = layoutOf(tile, mix.column.size, form.key.size, tile.shape.column.narrow,
                               shape.accumulatorType, kernel.alignmentOf(tile.buffer));
  tile.plan.core = findMatrixCore(kernel.getProcessor());
  tile.plan.format = formatOf(tile.shape);
  int64_t columns = tileExtent(mix.column.size);
  tile.plan.tile = {kAttentionRows, columns, kFragment, columns, keys};
  return tile;
}

/// Whether a mixed tile has the numbers of the keys of some scores: lines of both are keys.
static bool isSameTile(const AttentionForm &form, const AttentionTile &mixed, const AttentionTile &keys,
                       const AttentionForm::Scores &scores) {
  for (const LoopNode &node : form.program.nodes) {
    // Positions of the scores are those of the program.
    if (node.kind != LoopNode::load || node.buffer != scores.buffer)
      continue;
    if (ArrayRef<int64_t>(node.at.scales) != ArrayRef<int64_t>(form.program.steps()))
      return false;
  }
  auto strides = [](const AttentionTile &tile) {
    std::vector<std::pair<int64_t, int64_t>> all;
    for (const AttentionForm::ScoreDim &dim : tile.dims)
      if (dim.dim.strides[tile.operand] != 0)
        all.push_back({dim.step, dim.dim.strides[tile.operand]});
    return all;
  };
  auto without = [&](std::vector<std::pair<int64_t, int64_t>> all) {
    llvm::erase_if(all, [&](const auto &each) { return each.first == form.key.step; });
    llvm::sort(all);
    return all;
  };
  return mixed.buffer == keys.buffer && mixed.offset == keys.offset && mixed.depth == keys.along &&
         mixed.along == keys.depth && mixed.shape.columns == keys.shape.depth &&
         mixed.shape.column.narrow == keys.shape.column.narrow && keys.shape.column.isAlongDepth &&
         !mixed.shape.column.isAlongDepth && mixed.bytes() == keys.bytes() &&
         without(strides(mixed)) == without(strides(keys));
}

AttentionLayout::AttentionLayout(const AttentionForm &form, const KernelBuilder &kernel) {
  // Keys of f32 numbers are in registers before they are split.
  auto isNarrow = [](const ContractionShape &shape) { return shape.narrowA && shape.narrowB; };
  bool areNarrow =
      llvm::all_of(form.scores, [&](const AttentionForm::Scores &each) { return isNarrow(each.shape); }) &&
      llvm::all_of(form.mixes, [&](const AttentionForm::Mix &mix) { return isNarrow(mix.form.shape); });
  if (!areNarrow)
    keys = 32;
  auto add = [&](AttentionTile &tile) {
    tile.place = bytes;
    bytes += tile.bytes();
  };
  for (const AttentionForm::Scores &each : form.scores) {
    Scores &tiles = scores.emplace_back(
        Scores{tileOfScores(form, each, true, keys, kernel), tileOfScores(form, each, false, keys, kernel)});
    add(tiles.rows);
    add(tiles.keys);
  }
  for (const AttentionForm::Mix &mix : form.mixes) {
    AttentionTile &tile = mixed.emplace_back(tileOfMixed(form, mix, keys, kernel));
    for (auto [tiles, each] : llvm::zip_equal(scores, form.scores))
      if (!tile.isCopyOfOther && isSameTile(form, tile, tiles.keys, each)) {
        tile.isCopyOfOther = true;
        tile.place = tiles.keys.place;
      }
    if (!tile.isCopyOfOther)
      add(tile);
  }
  assert(bytes <= kAttentionBytes && "heads are not larger than kAttentionParts");
}

} // namespace ortc::gpu
