// The tiles that a block of attention keeps in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/attention/AttentionTiles.h"

#include "compiler/backends/gpu/product/AmdTile.h"
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

namespace {

/// Makes tiles of operands.
struct TileMaker {
  const AttentionForm &form;
  int64_t rows, keys;
  const MatrixCore &core;
  AttentionLayout::AlignmentOf alignmentOf;

  AttentionTile ofScores(const AttentionForm::Scores &scores, bool isRow) const;
  AttentionTile ofMixed(const AttentionForm::Mix &mix) const;
};

} // namespace

AttentionTile TileMaker::ofScores(const AttentionForm::Scores &scores, bool isRow) const {
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
                    scores.shape.accumulatorType, alignmentOf(tile.buffer));
  tile.plan.core = &core;
  tile.plan.format = formatOf(tile.shape, core);
  tile.plan.readsAcross = core.readsAcrossDepth;
  tile.plan.tile = {rows, keys, kFragment, keys, tileExtent(scores.depth.size)};
  return tile;
}

AttentionTile TileMaker::ofMixed(const AttentionForm::Mix &mix) const {
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
                               shape.accumulatorType, alignmentOf(tile.buffer));
  tile.plan.core = &core;
  tile.plan.format = formatOf(tile.shape, core);
  // A core that reads along the depth only reads 16 bits at a time across it. It does so where numbers take more: one
  // tile is then the keys of the scores, too, and its parts are made once.
  bool isNarrow = tile.plan.format.isExact() && tile.plan.format.number != MatrixNumber::f32;
  tile.plan.readsAcross = core.readsAcrossDepth || !isNarrow;
  int64_t columns = tileExtent(mix.column.size);
  tile.plan.tile = {rows, columns, kFragment, columns, keys};
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
  return mixed.plan.readsAcross && mixed.plan.format.number == keys.plan.format.number &&
         mixed.buffer == keys.buffer && mixed.offset == keys.offset && mixed.depth == keys.along &&
         mixed.along == keys.depth && mixed.shape.columns == keys.shape.depth &&
         mixed.shape.column.narrow == keys.shape.column.narrow && keys.shape.column.isAlongDepth &&
         !mixed.shape.column.isAlongDepth && mixed.bytes() == keys.bytes() &&
         without(strides(mixed)) == without(strides(keys));
}

std::optional<AttentionLayout> AttentionLayout::plan(const AttentionForm &form, const Processor &processor,
                                                     AlignmentOf alignmentOf) {
  const MatrixCore *core = findMatrixCore(processor);
  if (!core)
    return std::nullopt;
  // Keys of f32 numbers are in registers before they are split, or take twice the room.
  auto isNarrow = [](const ContractionShape &shape) { return shape.narrowA && shape.narrowB; };
  bool areNarrow =
      llvm::all_of(form.scores, [&](const AttentionForm::Scores &each) { return isNarrow(each.shape); }) &&
      llvm::all_of(form.mixes, [&](const AttentionForm::Mix &mix) { return isNarrow(mix.form.shape); });
  SmallVector<std::pair<int64_t, int64_t>> sizes{{64, areNarrow ? 64 : 32}};
  int64_t most = kAttentionBytes;
  if (!processor.isNvidia()) {
    sizes.append({{64, 32}, {32, 32}});
    most = kAmdSharedBytes;
  }
  for (auto [rows, keys] : sizes) {
    AttentionLayout layout(form, rows, keys, *core, alignmentOf);
    bool hasRegisters = keys == 32 || (!core->hasFewRegisters && !layout.multipliesFull());
    if (layout.bytes <= most && hasRegisters)
      return layout;
  }
  return std::nullopt;
}

bool AttentionLayout::multipliesFull() const {
  auto isFull = [](const AttentionTile &tile) { return tile.plan.format.number == MatrixNumber::f32; };
  return llvm::any_of(mixed, isFull) ||
         llvm::any_of(scores, [&](const Scores &each) { return isFull(each.rows); });
}

AttentionLayout::AttentionLayout(const AttentionForm &form, int64_t rows, int64_t keys,
                                 const MatrixCore &core, AlignmentOf alignmentOf)
    : rows(rows), keys(keys) {
  TileMaker maker{form, rows, keys, core, alignmentOf};
  auto add = [&](AttentionTile &tile) {
    tile.place = bytes;
    bytes += tile.bytes();
  };
  for (const AttentionForm::Scores &each : form.scores) {
    Scores &tiles = scores.emplace_back(Scores{maker.ofScores(each, true), maker.ofScores(each, false)});
    add(tiles.rows);
    add(tiles.keys);
  }
  for (const AttentionForm::Mix &mix : form.mixes) {
    AttentionTile &tile = mixed.emplace_back(maker.ofMixed(mix));
    for (auto [tiles, each] : llvm::zip_equal(scores, form.scores))
      if (!tile.isCopyOfOther && isSameTile(form, tile, tiles.keys, each)) {
        tile.isCopyOfOther = true;
        tile.place = tiles.keys.place;
      }
    if (!tile.isCopyOfOther)
      add(tile);
  }
}

} // namespace ortc::gpu
