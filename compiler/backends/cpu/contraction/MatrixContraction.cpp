// Emits a contraction for the matrix unit, or for vectors of pairs, from its plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/BlockLoops.h"
#include "compiler/backends/cpu/contraction/MatrixPlan.h"
#include "compiler/backends/cpu/contraction/MatrixUnit.h"
#include "compiler/backends/cpu/contraction/PairBlock.h"
#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/backends/cpu/isa/Architecture.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

/// Buffers whose lines are fetched before they are written: as many as there are registers to spare.
constexpr size_t kMaxWritten = 4;

/// Rows or columns; every block takes one or two tiles of them.
struct TileRun {
  Offset begin, end; ///< lines, from a multiple of kPanelLines on
  int64_t tiles = 2;
};

class MatrixEmitter : BlockLoops {
public:
  MatrixEmitter(OpBuilder &builder, const ContractionSpec &spec, const MatrixPlan &plan)
      : BlockLoops(builder), spec(spec), plan(plan) {}

  KernelInfo emit(ModuleOp module);

private:
  friend class BlockAccess;
  Offset moveBy(Offset start, Offset linear, ArrayRef<ContractionDim> dims, unsigned operand);
  void forRuns(const ChunkRange &range, int64_t total, llvm::function_ref<void(const TileRun &)> body);
  void emitOuter(Offset outer);
  void emitDepth(Offset block);
  void pack(bool isColumns, Offset from, Offset to);
  void emitColumns(Offset from, Offset to, int64_t tiles);
  void addWritten(BlockProduct &product, Offset row, Offset column);
  void addFetches(BlockProduct &product, Offset row, Offset column, Offset firstColumn);
  void emitBlock(Offset row, int64_t rowTiles, Offset column, int64_t columnTiles, Offset firstColumn);
  void finish(Offset row, Offset rowEnd, Offset column, int64_t columnTiles);
  Value buffer(unsigned operand) const { return kernel.buffers[spec.operands[operand].buffer]; }
  Offset panelOf(Offset line, Offset first) { return index.div(index.sub(line, first), kPanelLines); }

  const ContractionSpec &spec;
  const MatrixPlan &plan;

  KernelFunction kernel;
  Value configuration, packedRows, packedColumns, sums; ///< views of the workspace
  ChunkRange rows, columns;
  SmallVector<Offset> bases;       ///< of every operand at the current outer indices
  Offset depthBase[2];             ///< of A and B at the current block of k
  Offset depth;                    ///< of the current block
  Value isFirstBlock, isLastBlock; ///< the latter null when there is one block
  Offset sumsAt;                   ///< of the current block of sums
};

/// Access of an epilogue at a vector of 16 columns.
class BlockAccess final : public EpilogueAccess {
public:
  BlockAccess(MatrixEmitter &emitter, Offset row, Offset column, LaneRange range)
      : emitter(emitter), row(row), column(column), range(range) {}

  Value load(OpBuilder &builder, Location loc, unsigned operand) override {
    return loadLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), range);
  }
  void store(OpBuilder &builder, Location loc, unsigned operand, Value value) override {
    storeLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), range, value);
  }
  int64_t lanes() const override { return range.lanes; }

private:
  int64_t stride(unsigned operand) const { return emitter.plan.lane.strides[operand]; }
  Offset at(unsigned operand) {
    IndexBuilder &index = emitter.index;
    Offset moved = index.add(emitter.bases[operand], index.mul(row, emitter.plan.row.strides[operand]));
    return index.add(moved, index.mul(column, stride(operand)));
  }

  MatrixEmitter &emitter;
  Offset row, column;
  LaneRange range;
};

} // namespace

/// `start`, moved to the position `linear` of `dims`.
Offset MatrixEmitter::moveBy(Offset start, Offset linear, ArrayRef<ContractionDim> dims, unsigned operand) {
  for (size_t i = dims.size(); i-- > 0;) {
    Offset at = i == 0 ? linear : index.rem(linear, dims[i].size);
    start = index.add(start, index.mul(at, dims[i].strides[operand]));
    linear = index.div(linear, dims[i].size);
  }
  return start;
}

/// Calls `body` for the lines of a range in blocks of two tiles, and for those at the end that one tile holds.
void MatrixEmitter::forRuns(const ChunkRange &range, int64_t total,
                            llvm::function_ref<void(const TileRun &)> body) {
  int64_t rest = total % kPanelLines, whole = rest > 0 && rest <= kTileLines ? total - rest : total;
  if (whole > 0)
    body({range.begin, range.isLast ? index.min(range.end, whole) : Offset(whole), 2});
  if (whole < total)
    guarded(range.isLast, [&] { body({whole, total, 1}); });
}

KernelInfo MatrixEmitter::emit(ModuleOp module) {
  auto bytesOf = [](int64_t elements) { return (elements * 4 + 63) / 64 * 64; };
  int64_t rowsAt = 64, columnsAt = rowsAt + bytesOf(plan.packedRowWords()),
          partialAt = columnsAt + bytesOf(plan.packedLaneWords());
  KernelInfo info;
  info.name = spec.name;
  info.chunks = plan.outerChunks * plan.rowChunks * plan.laneChunks;
  info.workspaceBytesPerWorker = partialAt + bytesOf(plan.sumElements());
  kernel = createKernelFunction(builder, module, info, spec.buffers);
  Type word = builder.getI32Type();
  configuration = kernel.workspaceView(builder, loc, 0, word, 16);
  packedRows = kernel.workspaceView(builder, loc, rowsAt, word, plan.packedRowWords());
  packedColumns = kernel.workspaceView(builder, loc, columnsAt, word, plan.packedLaneWords());
  sums = kernel.workspaceView(builder, loc, partialAt, spec.accumulatorType, plan.sumElements());

  Offset chunk(kernel.chunk);
  columns = rangeOf(index.rem(chunk, plan.laneChunks), plan.laneChunks, plan.laneChunk, plan.lane.size);
  Offset others = index.div(chunk, plan.laneChunks);
  rows = rangeOf(index.rem(others, plan.rowChunks), plan.rowChunks, plan.rowChunk, plan.row.size);
  ChunkRange outer =
      rangeOf(index.div(others, plan.rowChunks), plan.outerChunks, plan.outerPerChunk, plan.outerTotal);
  bool hasTiles = plan.unit == BlockUnit::Tiles;
  if (hasTiles)
    plan.architecture->emitUnitBegin(builder, loc, configuration);
  loop(outer.begin, outer.end, 1, [&](Offset at) { emitOuter(at); });
  if (hasTiles)
    plan.architecture->emitUnitEnd(builder, loc);
  return info;
}

void MatrixEmitter::emitOuter(Offset outer) {
  bases.clear();
  for (size_t i = 0; i < spec.operands.size(); ++i)
    bases.push_back(moveBy(spec.operands[i].offset, outer, plan.outer, i));
  loop(0, plan.blocks(), 1, [&](Offset block) { emitDepth(block); });
}

void MatrixEmitter::emitDepth(Offset block) {
  Offset begin = index.mul(index.rem(block, plan.depthBlocks), plan.depthBlock);
  depth = index.min(plan.depthBlock, index.sub(plan.depth.size, begin));
  for (unsigned operand : {0u, 1u}) {
    Offset base = moveBy(bases[operand], index.div(block, plan.depthBlocks), plan.depthOuter, operand);
    depthBase[operand] = index.add(base, index.mul(begin, plan.depth.strides[operand]));
  }
  isFirstBlock = index.equal(block, 0);
  isLastBlock = plan.blocks() > 1 ? index.equal(block, plan.blocks() - 1) : Value();
  if (plan.packsRowsOnce())
    pack(/*isColumns=*/false, rows.begin, rows.end);
  forRuns(columns, plan.lane.size, [&](const TileRun &run) {
    loop(run.begin, run.end, plan.laneBlock, [&](Offset from) {
      emitColumns(from, index.min(index.add(from, plan.laneBlock), run.end), run.tiles);
    });
  });
}

/// Copies these lines of an operand at the current block of k.
void MatrixEmitter::pack(bool isColumns, Offset from, Offset to) {
  unsigned operand = isColumns ? plan.laneOperand : plan.rowOperand;
  int64_t lineStride = (isColumns ? plan.lane : plan.row).strides[operand];
  SplitSource source;
  source.buffer = buffer(operand);
  source.parts = plan.parts;
  source.at = index.add(depthBase[operand], index.mul(from, lineStride));
  source.lineStride = lineStride, source.depthStride = plan.depth.strides[operand];
  Offset lines = index.sub(to, from);
  source.lines = index.value(lines), source.depth = index.value(depth);
  source.isColumns = isColumns;
  Value panels = index.value(index.div(index.add(lines, kPanelLines - 1), kPanelLines));
  Value steps = index.value(index.div(index.add(depth, kTileDepth - 1), kTileDepth));
  emitSplitPanels(builder, loc, source, isColumns ? packedColumns : packedRows, panels, steps,
                  plan.panelWords());
}

/// All rows of the chunk times columns that are packed at once.
void MatrixEmitter::emitColumns(Offset from, Offset to, int64_t tiles) {
  pack(/*isColumns=*/true, from, to);
  forRuns(rows, plan.row.size, [&](const TileRun &run) {
    loop(run.begin, run.end, kPanelLines, [&](Offset row) {
      if (!plan.packsRowsOnce())
        pack(/*isColumns=*/false, row, index.min(index.add(row, kPanelLines), run.end));
      loop(from, to, kPanelLines, [&](Offset column) { emitBlock(row, run.tiles, column, tiles, from); });
    });
  });
}

/// Stores wait for the lines that they go to: asks for them while the unit works.
void MatrixEmitter::addWritten(BlockProduct &product, Offset row, Offset column) {
  for (size_t i = 2; i < spec.operands.size() && product.written.size() < kMaxWritten; ++i) {
    const KernelBuffer &buffer = spec.buffers[spec.operands[i].buffer];
    int64_t bytes = buffer.elementType.getIntOrFloatBitWidth() / 8, pitch = plan.row.strides[i] * bytes;
    if (!buffer.written || plan.lane.strides[i] != 1 || pitch <= 0 || pitch > INT32_MAX)
      continue;
    Offset at = index.add(bases[i], index.add(index.mul(row, plan.row.strides[i]), column));
    product.written.push_back({this->buffer(i), at, bytes, pitch});
  }
  product.writtenRows = std::max<int64_t>(1, kPanelLines / (plan.panelWords() / plan.stepWords()));
}

/// What the unit fetches while it multiplies.
void MatrixEmitter::addFetches(BlockProduct &product, Offset row, Offset column, Offset firstColumn) {
  // The next row of blocks reads other packed rows: each block of this one fetches a share of them.
  int64_t perRow =
      std::max<int64_t>(1, std::min({plan.laneBlock, plan.laneChunk, plan.lane.size}) / kPanelLines);
  product.nextLines = plan.packsRowsOnce() ? (plan.stepWords() * 4 / 64 + perRow - 1) / perRow : 0;
  Offset share =
      index.mul(panelOf(column, firstColumn), plan.panelWords() / plan.stepWords() * product.nextLines * 16);
  product.nextRowsAt = index.add(index.add(product.rowsAt, plan.panelWords()), share);
  if (plan.blocks() == 1)
    addWritten(product, row, column);
}

void MatrixEmitter::emitBlock(Offset row, int64_t rowTiles, Offset column, int64_t columnTiles,
                              Offset firstColumn) {
  Offset rowPanel = panelOf(row, rows.begin);
  sumsAt = 0;
  if (isLastBlock) {
    int64_t perRow = (std::min(plan.laneChunk, plan.lane.size) + kPanelLines - 1) / kPanelLines;
    Offset panel = index.add(index.mul(rowPanel, perRow), panelOf(column, columns.begin));
    sumsAt = index.mul(panel, kBlockElements);
  }
  BlockProduct product;
  product.parts = plan.parts;
  product.rowTiles = rowTiles, product.columnTiles = columnTiles;
  product.rows = packedRows,
  product.rowsAt = plan.packsRowsOnce() ? index.mul(rowPanel, plan.panelWords()) : Offset(0);
  product.columns = packedColumns,
  product.columnsAt = index.mul(panelOf(column, firstColumn), plan.panelWords());
  product.steps = index.value(index.div(index.add(depth, kTileDepth - 1), kTileDepth));
  product.sums = sums, product.sumsAt = sumsAt;
  product.isFirst = isFirstBlock;
  if (plan.unit == BlockUnit::Pairs) {
    emitPairBlock(builder, loc, *plan.architecture, product);
  } else {
    addFetches(product, row, column, firstColumn);
    plan.architecture->emitBlockProduct(builder, loc, product);
  }

  Offset rowEnd = index.min(index.add(row, rowTiles * kTileLines), rows.end);
  guarded(isLastBlock, [&] {
    // Only the last block of columns has less than all lanes.
    int64_t width = plan.lane.size % kPanelLines;
    if (columnTiles == 1 || width == 0 || plan.lane.size < kPanelLines)
      return finish(row, rowEnd, column, columnTiles);
    Offset edge = plan.lane.size - width;
    auto branch = scf::IfOp::create(builder, loc, index.equal(column, edge), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&branch.getThenRegion().front());
    finish(row, rowEnd, edge, columnTiles);
    builder.setInsertionPointToStart(&branch.getElseRegion().front());
    finish(row, rowEnd, column, columnTiles);
  });
}

/// The epilogue for the block's rows from `row` on. A column that is no constant has all its lanes.
void MatrixEmitter::finish(Offset row, Offset rowEnd, Offset column, int64_t columnTiles) {
  LaneRange whole{kTileLines, kTileLines};
  loop(0, index.sub(rowEnd, row), 1, [&](Offset line) {
    // Tiles of 16 rows: two tiles a row of them.
    Offset tileRow = index.mul(index.div(line, kTileLines), 2 * kTileWords);
    Offset place = index.add(index.add(sumsAt, tileRow), index.mul(index.rem(line, kTileLines), kTileLines));
    for (int64_t tile = 0; tile < columnTiles; ++tile) {
      Offset first = index.add(column, tile * kTileLines);
      LaneRange range = whole;
      if (column.isStatic())
        range.live = std::clamp<int64_t>(plan.lane.size - first.constant, 0, kTileLines);
      if (range.live == 0)
        continue;
      Value sum = loadLanes(builder, loc, sums, index.add(place, tile * kTileWords), 1, whole);
      BlockAccess access(*this, index.add(row, line), first, range);
      if (spec.epilogue)
        spec.epilogue(builder, loc, access, sum);
      else
        access.store(builder, loc, 2, sum);
    }
  });
}

KernelInfo emitMatrixContraction(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec,
                                 const MatrixPlan &plan) {
  return MatrixEmitter(builder, spec, plan).emit(module);
}

} // namespace ortc::cpu
