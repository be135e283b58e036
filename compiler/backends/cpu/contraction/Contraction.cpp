// Emits a contraction kernel from its plan: chunk -> outer indices -> blocks of k -> packing -> tiles.
// The scheme is that of BLIS without packing of A: a block of B in the second-level cache, a few rows of A in the
// first, accumulators in registers; the epilogue runs on the accumulators of the last block of k.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/Contraction.h"

#include "compiler/backends/cpu/contraction/BlockLoops.h"
#include "compiler/backends/cpu/contraction/ContractionChoices.h"
#include "compiler/backends/cpu/contraction/MatrixPlan.h"
#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/contraction/Packing.h"
#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/backends/emit/StorageConversion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>
#include <optional>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

/// Where a tile is.
struct TilePlace {
  const ContractionStrip &strip;
  int64_t rows;
  Offset row, column;
};

class TileAccess;

class ContractionEmitter : BlockLoops {
public:
  ContractionEmitter(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec, const Target &target,
                     ContractionPlan plan)
      : BlockLoops(builder), module(module), spec(spec), target(target), plan(std::move(plan)) {}

  KernelInfo emit();

private:
  friend class TileAccess;
  SmallVector<Offset> delinearize(Offset linear, ArrayRef<ContractionDim> dims);
  Offset moveBy(Offset start, ArrayRef<Offset> position, ArrayRef<ContractionDim> dims, unsigned operand);

  void emitOuter(Offset outer);
  void emitBlock(Offset block);
  void enterOuter(Offset outer);
  void enterBlock(Offset block);
  void pack();
  void packStrip(const ContractionStrip &strip, Offset from, Offset to);
  void emitStrip(const ContractionStrip &strip);
  void emitWidenedRows();
  void emitStripRows(const ContractionStrip &strip, Offset from, Offset to);
  void widenRows(Offset from, Offset to);
  void emitRows(const ContractionStrip &strip, llvm::function_ref<void(Offset row, int64_t rows)> body);
  void packRows(Offset from, Offset to, int64_t height);
  int64_t runs() const;
  Offset packedDepth(ReductionIndex k);
  void emitTile(const TilePlace &place);
  void fetchNextRows(const TilePlace &place, ReductionIndex k);
  void fetchNextResults(const TilePlace &place);
  void fetchPartials(const TilePlace &place);
  void fetchRows(const TilePlace &place, Offset rowBase);
  SmallVector<Value> initialSums(const TilePlace &place);
  void finishTile(const TilePlace &place, ArrayRef<Value> sums);
  void finishRows(const TilePlace &place, TileAccess &access, ArrayRef<Value> sums);
  void visitSums(const TilePlace &place,
                 llvm::function_ref<void(int64_t sum, int64_t row, int64_t vector, LaneRange range)> visit);
  Offset partialPlace(const TilePlace &place);
  Value partialBuffer() const;
  int64_t partialRowPitch() const;
  Value zero() { return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(sumType())); }
  VectorType sumType() const { return VectorType::get({plan.lanes}, spec.accumulatorType); }
  Value buffer(unsigned operand) const { return kernel.buffers[spec.operands[operand].buffer]; }
  Value widen(Value value, unsigned operand) {
    return spec.narrow(operand) ? extendToF32(builder, loc, value, spec.narrow(operand)) : value;
  }
  Offset packedPlace(Offset column) { return index.mul(index.sub(column, columns.begin), plan.blockDepth()); }

  ModuleOp module;
  const ContractionSpec &spec;
  const Target &target;
  ContractionPlan plan;

  KernelFunction kernel;
  Value packed, packedRows, partial, tileSums; ///< views of the workspace
  ChunkRange rows, columns;
  SmallVector<Offset> bases; ///< of every operand at the current outer indices
  Offset blockBase[2];       ///< of A and B at the current block of k
  SmallVector<ReductionLoop> reduction;
  std::optional<Offset> packedFrom; ///< first of the rows that are packed now
  Value isFirstBlock, isLastBlock;  ///< null when there is one block
  Value isLastDepth;                ///< last block along the innermost k dim; null when there is one
};

/// Access of an epilogue at one vector of a tile.
class TileAccess final : public EpilogueAccess {
public:
  TileAccess(ContractionEmitter &emitter, const TilePlace &place) : emitter(emitter), place(place) {}

  Value load(OpBuilder &builder, Location loc, unsigned operand) override {
    return loadLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), range);
  }
  void store(OpBuilder &builder, Location loc, unsigned operand, Value value) override {
    storeLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), range, value);
  }
  int64_t lanes() const override { return emitter.plan.lanes; }

  void moveTo(Offset newRow, int64_t newVector, LaneRange newRange) {
    row = newRow, vector = newVector, range = newRange;
  }

private:
  int64_t stride(unsigned operand) const { return emitter.plan.lane.strides[operand]; }
  Offset at(unsigned operand) {
    const ContractionPlan &plan = emitter.plan;
    IndexBuilder &index = emitter.index;
    auto [base, isNew] = tileBases.try_emplace(operand);
    if (isNew) {
      Offset moved = index.add(emitter.bases[operand], index.mul(place.row, plan.row.strides[operand]));
      base->second = index.add(moved, index.mul(place.column, plan.lane.strides[operand]));
    }
    Offset moved = index.add(base->second, index.mul(row, plan.row.strides[operand]));
    return index.add(moved, vector * plan.lanes * stride(operand));
  }

  ContractionEmitter &emitter;
  const TilePlace &place;
  std::map<unsigned, Offset>
      tileBases; ///< computed where the epilogue starts, which all of it is dominated by
  Offset row;
  int64_t vector = 0;
  LaneRange range;
};

} // namespace

SmallVector<Offset> ContractionEmitter::delinearize(Offset linear, ArrayRef<ContractionDim> dims) {
  SmallVector<Offset> position(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    position[i] = i == 0 ? linear : index.rem(linear, dims[i].size);
    linear = index.div(linear, dims[i].size);
  }
  return position;
}

Offset ContractionEmitter::moveBy(Offset start, ArrayRef<Offset> position, ArrayRef<ContractionDim> dims,
                                  unsigned operand) {
  for (auto [at, dim] : llvm::zip_equal(position, dims))
    start = index.add(start, index.mul(at, dim.strides[operand]));
  return start;
}

KernelInfo ContractionEmitter::emit() {
  int64_t elementBytes = spec.accumulatorType.getIntOrFloatBitWidth() / 8;
  auto bytesOf = [&](int64_t elements) { return (elements * elementBytes + 63) / 64 * 64; };
  int64_t packedBytes = bytesOf(plan.packedElements), packedRowBytes = bytesOf(plan.packedRowElements);
  KernelInfo info;
  info.name = spec.name;
  info.chunks = plan.outerChunks * plan.rowChunks * plan.laneChunks;
  int64_t partialBytes = bytesOf(plan.partialElements);
  info.workspaceBytesPerWorker = packedBytes + packedRowBytes + partialBytes + bytesOf(plan.tileElements);
  kernel = createKernelFunction(builder, module, info, spec.buffers);
  if (plan.packedElements)
    packed = kernel.workspaceView(builder, loc, 0, spec.accumulatorType, plan.packedElements);
  if (plan.packedRowElements)
    packedRows =
        kernel.workspaceView(builder, loc, packedBytes, spec.accumulatorType, plan.packedRowElements);
  if (plan.partialElements)
    partial = kernel.workspaceView(builder, loc, packedBytes + packedRowBytes, spec.accumulatorType,
                                   plan.partialElements);
  if (plan.tileElements)
    tileSums = kernel.workspaceView(builder, loc, packedBytes + packedRowBytes + partialBytes,
                                    spec.accumulatorType, plan.tileElements);

  Offset chunk(kernel.chunk);
  Offset laneChunk = index.rem(chunk, plan.laneChunks);
  Offset others = index.div(chunk, plan.laneChunks);
  Offset rowChunk = index.rem(others, plan.rowChunks);
  Offset outerChunk = index.div(others, plan.rowChunks);
  columns = rangeOf(laneChunk, plan.laneChunks, plan.laneChunk, plan.lane.size);
  rows = rangeOf(rowChunk, plan.rowChunks, plan.rowChunk, plan.row.size);
  ChunkRange outer = rangeOf(outerChunk, plan.outerChunks, plan.outerPerChunk, plan.outerTotal);
  if (plan.packOnce) {
    enterOuter(0);
    enterBlock(0);
    pack();
  }
  loop(outer.begin, outer.end, 1, [&](Offset at) { emitOuter(at); });
  return info;
}

/// Moves all operands to where the outer indices are.
void ContractionEmitter::enterOuter(Offset outer) {
  SmallVector<Offset> position = delinearize(outer, plan.outer);
  bases.clear();
  for (size_t i = 0; i < spec.operands.size(); ++i)
    bases.push_back(moveBy(spec.operands[i].offset, position, plan.outer, i));
}

void ContractionEmitter::emitOuter(Offset outer) {
  enterOuter(outer);
  loop(0, plan.blocks(), 1, [&](Offset block) { emitBlock(block); });
}

/// Moves A and B to a block of k.
void ContractionEmitter::enterBlock(Offset block) {
  const ContractionDim &innermost = plan.kLoops.back();
  Offset depthBlock = index.rem(block, plan.kBlockCount);
  SmallVector<Offset> position = delinearize(index.div(block, plan.kBlockCount), plan.kBlocks);
  Offset depthBegin = index.mul(depthBlock, plan.kBlock);
  for (unsigned operand : {0u, 1u}) {
    Offset base = moveBy(bases[operand], position, plan.kBlocks, operand);
    blockBase[operand] = index.add(base, index.mul(depthBegin, innermost.strides[operand]));
  }
  isFirstBlock = isLastBlock = isLastDepth = Value();
  if (plan.blocks() > 1) {
    isFirstBlock = index.equal(block, 0);
    isLastBlock = index.equal(block, plan.blocks() - 1);
  }
  if (plan.kBlockCount > 1)
    isLastDepth = index.equal(depthBlock, plan.kBlockCount - 1);

  reduction.clear();
  for (const ContractionDim &dim : plan.kLoops)
    reduction.push_back({dim.size, 1});
  if (innermost.size != plan.kBlock * plan.kBlockCount)
    reduction.back().count = index.min(plan.kBlock, index.sub(innermost.size, depthBegin));
  else
    reduction.back().count = plan.kBlock;
  reduction.back().unroll = target.isa.forSize ? 1 : 2; // four is no faster and a fifth more code
}

void ContractionEmitter::emitBlock(Offset block) {
  enterBlock(block);
  if (plan.packLanes && !plan.packOnce)
    pack();
  if (plan.widenedRows)
    return emitWidenedRows();
  for (const ContractionStrip &strip : plan.strips)
    emitStrip(strip);
}

/// Extends some rows, and takes all columns along them.
void ContractionEmitter::emitWidenedRows() {
  Offset end = rows.isLast ? index.min(rows.end, plan.row.size) : Offset(plan.row.size);
  loop(rows.begin, end, plan.widenedRows, [&](Offset block) {
    Offset blockEnd = index.min(index.add(block, plan.widenedRows), end);
    widenRows(block, blockEnd);
    packedFrom = block;
    for (const ContractionStrip &strip : plan.strips)
      if (strip.begin != strip.end)
        emitStripRows(strip, block, blockEnd);
    packedFrom.reset();
  });
}

void ContractionEmitter::emitStripRows(const ContractionStrip &strip, Offset from, Offset to) {
  auto tilesOf = [&](Offset row, int64_t height) {
    if (&strip != &plan.strips[0])
      return guarded(columns.isLast, [&] { emitTile({strip, height, row, strip.begin}); });
    Offset end = columns.isLast ? index.min(columns.end, strip.end) : Offset(strip.end);
    loop(columns.begin, end, strip.vectors * plan.lanes,
         [&](Offset column) { emitTile({strip, height, row, column}); });
  };
  int64_t whole = plan.row.size / strip.rows * strip.rows;
  loop(from, index.min(to, whole), strip.rows, [&](Offset row) { tilesOf(row, strip.rows); });
  if (whole < plan.row.size)
    guarded(index.equal(to, plan.row.size), [&] { tilesOf(whole, plan.row.size - whole); });
}

/// Row after row, along the k loops.
void ContractionEmitter::widenRows(Offset from, Offset to) {
  unsigned operand = plan.rowOperand;
  int64_t step = plan.kLoops.back().strides[operand];
  ArrayRef<ContractionDim> around = ArrayRef<ContractionDim>(plan.kLoops).drop_back();
  loop(from, to, 1, [&](Offset row) {
    loop(0, runs(), 1, [&](Offset run) {
      Offset first = index.add(blockBase[operand], index.mul(row, plan.row.strides[operand]));
      Offset source = moveBy(first, delinearize(run, around), around, operand);
      Offset place =
          index.add(index.mul(index.sub(row, from), plan.widenedPitch), index.mul(run, plan.kBlock));
      auto copy = [&](Offset k, int64_t lanes) {
        Offset at = index.add(source, index.mul(k, step));
        Value value = widen(loadLanes(builder, loc, buffer(operand), at, 1, {lanes, lanes}), operand);
        storeLanes(builder, loc, packedRows, index.add(place, k), 1, {lanes, lanes}, value);
      };
      Offset count = reduction.back().count,
             whole = step == 1 ? index.sub(count, index.rem(count, plan.lanes)) : Offset(0);
      loop(0, whole, plan.lanes, [&](Offset k) { copy(k, plan.lanes); });
      loop(whole, count, 1, [&](Offset k) { copy(k, 1); });
    });
  });
}

void ContractionEmitter::pack() {
  for (const ContractionStrip &strip : plan.strips) {
    if (strip.begin == strip.end)
      continue;
    if (&strip == &plan.strips[0])
      packStrip(strip, columns.begin, columns.isLast ? index.min(columns.end, strip.end) : Offset(strip.end));
    else
      guarded(columns.isLast, [&] { packStrip(strip, strip.begin, strip.begin + 1); });
  }
}

/// Packs the panels of a strip between two columns; with several k loops, one run of the last loop after another.
void ContractionEmitter::packStrip(const ContractionStrip &strip, Offset from, Offset to) {
  unsigned operand = plan.laneOperand;
  const ContractionDim &innermost = plan.kLoops.back();
  ArrayRef<ContractionDim> around = ArrayRef<ContractionDim>(plan.kLoops).drop_back();
  int64_t width = strip.vectors * plan.lanes;
  loop(0, runs(), 1, [&](Offset run) {
    PanelCopy copy;
    copy.source = buffer(operand);
    copy.sourceAt = moveBy(index.add(blockBase[operand], index.mul(from, plan.lane.strides[operand])),
                           delinearize(run, around), around, operand);
    copy.laneStride = plan.lane.strides[operand];
    copy.depthStride = innermost.strides[operand];
    copy.narrowType = spec.narrow(operand);
    copy.panel = packed;
    copy.panelAt = index.add(packedPlace(from), index.mul(run, plan.kBlock * width));
    copy.vectors = strip.vectors, copy.lanes = plan.lanes, copy.tail = strip.tail;
    copy.panels = index.div(index.add(index.sub(to, from), width - 1), width);
    copy.panelStep = plan.blockDepth() * width;
    copy.depth = reduction.back().count;
    copy.lastRemainder = innermost.size % plan.lanes;
    copy.isLast = isLastDepth;
    emitPanelCopy(builder, loc, copy);
  });
}

/// Calls `body` for all row tiles of the chunk.
void ContractionEmitter::emitRows(const ContractionStrip &strip,
                                  llvm::function_ref<void(Offset, int64_t)> body) {
  int64_t whole = plan.row.size / strip.rows * strip.rows;
  Offset end = rows.isLast ? index.min(rows.end, whole) : Offset(whole);
  loop(rows.begin, end, strip.rows, [&](Offset row) { body(row, strip.rows); });
  if (whole < plan.row.size)
    guarded(rows.isLast, [&] { body(whole, plan.row.size - whole); });
}

void ContractionEmitter::emitStrip(const ContractionStrip &strip) {
  if (strip.begin == strip.end)
    return;
  if (&strip != &plan.strips[0]) {
    guarded(columns.isLast, [&] {
      emitRows(strip, [&](Offset row, int64_t height) { emitTile({strip, height, row, strip.begin}); });
    });
    return;
  }
  Offset end = columns.isLast ? index.min(columns.end, strip.end) : Offset(strip.end);
  int64_t width = strip.vectors * plan.lanes;
  auto alongColumns = [&](llvm::function_ref<void(Offset)> body) { loop(columns.begin, end, width, body); };
  // A row of panels at a time: the rows of A stay in the first-level cache, the panels come from the second. The
  // other order wants shallow blocks of k and lost by 3 to 10 %.
  auto tilesOf = [&](Offset row, int64_t height) {
    alongColumns([&](Offset column) { emitTile({strip, height, row, column}); });
  };
  if (!plan.packedRows)
    return emitRows(strip, tilesOf);
  int64_t whole = plan.row.size / strip.rows * strip.rows;
  Offset rowEnd = rows.isLast ? index.min(rows.end, whole) : Offset(whole);
  loop(rows.begin, rowEnd, plan.packedRows, [&](Offset block) {
    Offset blockEnd = index.min(index.add(block, plan.packedRows), rowEnd);
    packRows(block, blockEnd, strip.rows);
    packedFrom = block;
    loop(block, blockEnd, strip.rows, [&](Offset row) { tilesOf(row, strip.rows); });
    packedFrom.reset();
  });
  if (whole < plan.row.size)
    guarded(rows.isLast, [&] { tilesOf(whole, plan.row.size - whole); });
}

/// Copies rows tile by tile, k by k within a tile. The source is read k by k for all tiles, in long runs; whole
/// vectors are stored, of which the next k overwrites what is too much.
void ContractionEmitter::packRows(Offset from, Offset to, int64_t height) {
  unsigned operand = plan.rowOperand;
  const ContractionDim &innermost = plan.kLoops.back();
  ArrayRef<ContractionDim> around = ArrayRef<ContractionDim>(plan.kLoops).drop_back();
  Offset tiles = index.div(index.sub(to, from), height);
  loop(0, runs(), 1, [&](Offset run) {
    Offset base = moveBy(index.add(blockBase[operand], from), delinearize(run, around), around, operand);
    loop(0, reduction.back().count, 1, [&](Offset k) {
      Offset source = index.add(base, index.mul(k, innermost.strides[operand]));
      Offset place = index.mul(index.add(index.mul(run, plan.kBlock), k), height);
      fetchRun(builder, loc, buffer(operand), index.add(source, kFetchedRows * innermost.strides[operand]),
               plan.packedRows + plan.lanes);
      loop(0, tiles, 1, [&](Offset tile) {
        Offset tileSource = index.add(source, index.mul(tile, height));
        Offset tilePlace = index.add(place, index.mul(tile, plan.packedTileElements));
        for (int64_t lane = 0; lane < height; lane += plan.lanes) {
          LaneRange range{plan.lanes, std::min(plan.lanes, height - lane)};
          Value value = loadLanes(builder, loc, buffer(operand), index.add(tileSource, lane), 1, range);
          storeLanes(builder, loc, packedRows, index.add(tilePlace, lane), 1, {plan.lanes, plan.lanes},
                     widen(value, operand));
        }
      });
    });
  });
}

/// Times the last k loop runs within a block.
int64_t ContractionEmitter::runs() const {
  int64_t count = 1;
  for (const ContractionDim &dim : ArrayRef<ContractionDim>(plan.kLoops).drop_back())
    count *= dim.size;
  return count;
}

/// Row of a packed panel (or packed rows) at a position of the k loops.
Offset ContractionEmitter::packedDepth(ReductionIndex k) {
  Offset depth = 0;
  for (auto [at, dim] : llvm::zip_equal(k, plan.kLoops))
    depth = index.add(index.mul(depth, &dim == &plan.kLoops.back() ? plan.kBlock : dim.size), at);
  return depth;
}

void ContractionEmitter::emitTile(const TilePlace &place) {
  const ContractionStrip &strip = place.strip;
  unsigned rowOperand = plan.rowOperand, laneOperand = plan.laneOperand;
  int64_t rowStride = plan.row.strides[rowOperand], laneStride = plan.lane.strides[laneOperand];
  Offset rowBase = index.add(blockBase[rowOperand], index.mul(place.row, rowStride));
  Offset laneBase = plan.packLanes ? packedPlace(place.column)
                                   : index.add(blockBase[laneOperand], index.mul(place.column, laneStride));
  Offset packedTile;
  if (plan.packedRows && packedFrom)
    packedTile = index.mul(index.div(index.sub(place.row, *packedFrom), place.rows), plan.packedTileElements);
  auto loadRow = [&](int64_t row, ReductionIndex k) -> Value {
    if (plan.widenedRows) {
      Offset at = index.add(index.mul(index.add(index.sub(place.row, *packedFrom), row), plan.widenedPitch),
                            packedDepth(k));
      return memref::LoadOp::create(builder, loc, packedRows, index.value(at));
    }
    if (packedFrom) {
      Offset at = index.add(index.add(packedTile, index.mul(packedDepth(k), place.rows)), row);
      return memref::LoadOp::create(builder, loc, packedRows, index.value(at));
    }
    Offset at = index.add(moveBy(rowBase, k, plan.kLoops, rowOperand), row * rowStride);
    return widen(memref::LoadOp::create(builder, loc, buffer(rowOperand), index.value(at)), rowOperand);
  };
  auto loadLane = [&](int64_t vector, ReductionIndex k) -> Value {
    int64_t live = vector + 1 == strip.vectors ? strip.tail : plan.lanes;
    if (plan.fetchesRows && vector == 0)
      fetchNextRows(place, k);
    if (!plan.packLanes) {
      Offset at = index.add(moveBy(laneBase, k, plan.kLoops, laneOperand), vector * plan.lanes);
      return widen(loadLanes(builder, loc, buffer(laneOperand), at, 1, {plan.lanes, live}), laneOperand);
    }
    Offset panelRow = index.mul(packedDepth(k), strip.vectors * plan.lanes);
    Offset at = index.add(index.add(laneBase, panelRow), vector * plan.lanes);
    return loadLanes(builder, loc, packed, at, 1, {plan.lanes, plan.lanes});
  };
  if (plan.fetchesResults)
    fetchNextResults(place);
  if (target.machine.contraction.fetchesNext && &strip == &plan.strips[0]) {
    fetchPartials(place);
    fetchRows(place, rowBase);
  }
  MicrokernelTile tile{place.rows, strip.vectors, plan.lanes};
  SmallVector<Value> sums = emitMicrokernel(builder, loc, tile, reduction, initialSums(place),
                                            {loadRow, loadLane}, target.usesFma(spec.numerics));
  finishTile(place, sums);
}

/// At each k another piece of the rows that the next tile reads: they lie behind those of this one, without gaps. Of
/// unrolled ks only those whose piece begins a line.
void ContractionEmitter::fetchNextRows(const TilePlace &place, ReductionIndex k) {
  constexpr int64_t kLineBytes = 64;
  unsigned operand = plan.rowOperand;
  int64_t piece = place.rows * (spec.accumulatorType.getIntOrFloatBitWidth() / 8);
  if (k.back().constant * piece % kLineBytes >= piece)
    return;
  Offset next = index.mul(index.add(place.row, place.rows), plan.row.strides[operand]);
  Offset at = index.add(index.add(blockBase[operand], next), index.mul(k.back(), place.rows));
  fetchRun(builder, loc, buffer(operand), at, 1);
}

/// The lines of results below this tile.
void ContractionEmitter::fetchNextResults(const TilePlace &place) {
  int64_t operand = findOutput(spec), stride = plan.row.strides[operand];
  Offset at = index.add(bases[operand], index.mul(index.add(place.row, place.rows), stride));
  at = index.add(at, place.column);
  for (int64_t row = 0; row < place.rows; ++row)
    fetchRun(builder, loc, buffer(operand), index.add(at, row * stride), place.strip.vectors * plan.lanes,
             Fetch::Write);
}

/// Sums begin with partial ones, so a tile would wait for them: asks for those of the tile beside it.
void ContractionEmitter::fetchPartials(const TilePlace &place) {
  if (!isFirstBlock)
    return;
  int64_t width = place.strip.vectors * plan.lanes;
  Offset next = index.add(partialPlace(place), width);
  for (int64_t row = 0; row < place.rows; ++row)
    fetchRun(builder, loc, partialBuffer(), index.add(next, row * partialRowPitch()), width);
}

/// Short rows that are read in place are streams at an end before a processor foresees them: all tiles along some rows
/// ask for a part of those below each. Shorter rows (64 and 96 numbers) lost by it, longer ones (512) gained nothing
/// (docs/benchmarks/kernels-avx2.md#products-on-cores-with-avx2).
void ContractionEmitter::fetchRows(const TilePlace &place, Offset rowBase) {
  const ContractionDim &innermost = plan.kLoops.back();
  constexpr int64_t kLeastRow = 128, kMostRow = 256;
  if (plan.kBlock < kLeastRow || plan.kBlock > kMostRow || packedFrom || plan.kLoops.size() > 1 ||
      innermost.strides[plan.rowOperand] != 1)
    return;
  int64_t width = place.strip.vectors * plan.lanes, pitch = plan.row.strides[plan.rowOperand];
  int64_t tiles = std::max<int64_t>(1, std::min(plan.laneChunk, place.strip.end) / width);
  int64_t share = roundUp(ceilDiv(plan.kBlock, tiles), 16);
  Offset tile = index.div(index.sub(place.column, columns.begin), width);
  Offset next = index.add(index.add(rowBase, place.rows * pitch), index.mul(tile, share));
  for (int64_t row = 0; row < place.rows; ++row)
    fetchRun(builder, loc, buffer(plan.rowOperand), index.add(next, row * pitch), share, Fetch::ReadLater);
}

void ContractionEmitter::visitSums(const TilePlace &place,
                                   llvm::function_ref<void(int64_t, int64_t, int64_t, LaneRange)> visit) {
  const ContractionStrip &strip = place.strip;
  for (int64_t row = 0; row < place.rows; ++row)
    for (int64_t vector = 0; vector < strip.vectors; ++vector)
      visit(row * strip.vectors + vector, row, vector,
            {plan.lanes, vector + 1 == strip.vectors ? strip.tail : plan.lanes});
}

Value ContractionEmitter::partialBuffer() const {
  return partial ? partial : buffer(static_cast<unsigned>(spec.partialOperand));
}

int64_t ContractionEmitter::partialRowPitch() const {
  return partial ? plan.partialPitch : plan.row.strides[spec.partialOperand];
}

/// Place of the tile's first partial sum.
Offset ContractionEmitter::partialPlace(const TilePlace &place) {
  Offset row = place.row, column = place.column, base = 0;
  if (partial) {
    row = index.sub(row, rows.begin);
    column = index.sub(column, columns.begin);
  } else {
    base = bases[spec.partialOperand];
  }
  return index.add(base, index.add(index.mul(row, partialRowPitch()), column));
}

/// Zeros in the first block of k, the partial sums of the blocks before in the others.
SmallVector<Value> ContractionEmitter::initialSums(const TilePlace &place) {
  int64_t count = place.rows * place.strip.vectors;
  if (!isFirstBlock)
    return SmallVector<Value>(count, zero());
  SmallVector<Type> types(count, sumType());
  auto branch = scf::IfOp::create(builder, loc, types, isFirstBlock, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(builder, loc, SmallVector<Value>(count, zero()));
  builder.setInsertionPointToStart(&branch.getElseRegion().front());
  Offset at = partialPlace(place);
  SmallVector<Value> sums;
  visitSums(place, [&](int64_t, int64_t row, int64_t vector, LaneRange range) {
    if (partial)
      range.live = range.lanes; // rows of the workspace are padded to whole vectors
    Offset element = index.add(at, row * partialRowPitch() + vector * plan.lanes);
    sums.push_back(loadLanes(builder, loc, partialBuffer(), element, 1, range));
  });
  scf::YieldOp::create(builder, loc, sums);
  return SmallVector<Value>(branch.getResults());
}

/// The epilogue in the last block of k, partial sums to memory in the others.
void ContractionEmitter::finishTile(const TilePlace &place, ArrayRef<Value> sums) {
  auto finish = [&] {
    TileAccess access(*this, place);
    if (plan.tileElements)
      return finishRows(place, access, sums);
    visitSums(place, [&](int64_t sum, int64_t row, int64_t vector, LaneRange range) {
      access.moveTo(row, vector, range);
      if (spec.epilogue)
        spec.epilogue(builder, loc, access, sums[sum]);
      else
        access.store(builder, loc, 2, sums[sum]);
    });
  };
  if (!isLastBlock)
    return finish();
  auto branch = scf::IfOp::create(builder, loc, isLastBlock, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.getThenRegion().front());
  finish();
  builder.setInsertionPointToStart(&branch.getElseRegion().front());
  Offset at = partialPlace(place);
  visitSums(place, [&](int64_t sum, int64_t row, int64_t vector, LaneRange range) {
    if (partial)
      range.live = range.lanes;
    Offset element = index.add(at, row * partialRowPitch() + vector * plan.lanes);
    storeLanes(builder, loc, partialBuffer(), element, 1, range, sums[sum]);
  });
}

/// The epilogue in a loop over the rows of the tile.
void ContractionEmitter::finishRows(const TilePlace &place, TileAccess &access, ArrayRef<Value> sums) {
  int64_t pitch = place.strip.vectors * plan.lanes;
  LaneRange whole{plan.lanes, plan.lanes};
  visitSums(place, [&](int64_t sum, int64_t, int64_t, LaneRange) {
    storeLanes(builder, loc, tileSums, sum * plan.lanes, 1, whole, sums[sum]);
  });
  loop(0, place.rows, 1, [&](Offset row) {
    for (int64_t vector = 0; vector < place.strip.vectors; ++vector) {
      int64_t live = vector + 1 == place.strip.vectors ? place.strip.tail : plan.lanes;
      access.moveTo(row, vector, {plan.lanes, live});
      Offset at = index.add(index.mul(row, pitch), vector * plan.lanes);
      spec.epilogue(builder, loc, access, loadLanes(builder, loc, tileSums, at, 1, whole));
    }
  });
}

FailureOr<KernelInfo> emitContraction(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec,
                                      const Target &target) {
  if (usesDotKernel(spec))
    return emitDotKernel(builder, module, spec, target);
  if (std::optional<MatrixPlan> plan = planMatrix(spec, target); plan && isFasterOnUnit(*plan))
    return emitMatrixContraction(builder, module, spec, *plan);
  KernelBlocking blocking;
  FailureOr<ContractionPlan> plan = chooseContraction(module.getContext(), spec, target, blocking);
  if (failed(plan))
    return failure();
  KernelInfo info = ContractionEmitter(builder, module, spec, target, std::move(*plan)).emit();
  info.blocking = std::move(blocking);
  return info;
}

} // namespace ortc::cpu
