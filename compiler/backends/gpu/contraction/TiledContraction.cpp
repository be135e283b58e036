// Contractions tile by tile: operands go through shared memory, sums stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every sum is that of k from the first to the last, whatever the tile; what is beyond an edge counts as zero. Finished
// sums go through shared memory, too: the epilogue is one loop over the elements of the tile, neighbours by neighbours.
#include "compiler/backends/gpu/contraction/TiledContraction.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/contraction/ScalarAccess.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

/// Threads lie in a square; each has every kSide-th row and a run of columns of the tile.
static constexpr int64_t kSide = 16, kTileThreads = kSide * kSide;
/// Bytes of sums that are in shared memory at a time.
static constexpr int64_t kSumBytes = 32 << 10;
/// Blocks that fill a device: smaller tiles where larger ones would be fewer.
static constexpr int64_t kFewBlocks = 128;

std::optional<ContractionTile> chooseTile(const ContractionShape &shape, const ContractionAxes &axes) {
  if (usesDotKernel(shape) || std::min(axes.row.size, axes.lane.size) < kSide / 2)
    return std::nullopt;
  bool isDouble = shape.accumulatorType.isF64();
  for (ContractionTile tile : {ContractionTile{128, 128, 8}, {64, 64, 16}, {32, 32, 16}}) {
    int64_t blocks = axes.outerTotal * llvm::divideCeilSigned(axes.row.size, tile.rows) *
                     llvm::divideCeilSigned(axes.lane.size, tile.columns);
    bool isLarge = tile.rows == 128, isSmall = tile.rows == 32;
    if (isSmall || (blocks >= kFewBlocks && !(isLarge && isDouble)))
      return tile;
  }
  return std::nullopt;
}

namespace {

class TileEmitter {
public:
  TileEmitter(KernelBuilder &kernel, const ContractionJob &job, const ContractionTile &tile, ThreadBuilder &b,
              ArrayRef<Value> buffers)
      : kernel(kernel), job(job), shape(job.shape), axes(job.axes), tile(tile), b(b), buffers(buffers),
        rowsPerThread(tile.rows / kSide), columnsPerThread(tile.columns / kSide),
        element(shape.accumulatorType), depthDims(axes.depthDims()), depth(sizeOf(depthDims)) {}

  void emit() {
    int64_t rowTiles = llvm::divideCeilSigned(axes.row.size, tile.rows),
            columnTiles = llvm::divideCeilSigned(axes.lane.size, tile.columns);
    thread = b.thread();
    Value block = b.block();
    firstColumn = b.mul(b.rem(block, columnTiles), tile.columns);
    Value others = b.div(block, columnTiles);
    firstRow = b.mul(b.rem(others, rowTiles), tile.rows);
    SmallVector<int64_t> sizes;
    for (const ContractionDim &dim : axes.outer)
      sizes.push_back(dim.size);
    for (const ContractionOperand &operand : shape.operands)
      places.push_back(b.index(operand.offset));
    for (auto [dim, digit] : llvm::zip_equal(axes.outer, delinearize(b, b.div(others, rowTiles), sizes)))
      for (auto [place, stride] : llvm::zip_equal(places, dim.strides))
        place = b.add(place, b.mul(digit, stride));
    rowTile = kernel.shared(b, element, tile.depth * rowPitch());
    columnTile = kernel.shared(b, element, tile.depth * tile.columns);
    threadRow = b.div(thread, kSide), threadColumn = b.rem(thread, kSide);

    SmallVector<Value> sums(rowsPerThread * columnsPerThread, zero());
    sums = b.fold({b.index(0), b.index(depth)}, tile.depth, sums, [&](Value k, ValueRange carried) {
      stage(axes.rowOperand, k);
      stage(axes.laneOperand, k);
      b.barrier();
      SmallVector<Value> next = llvm::to_vector_of<Value>(carried);
      for (int64_t step = 0; step < tile.depth; ++step)
        multiply(step, next);
      b.barrier();
      return next;
    });
    finish(sums);
  }

private:
  Value zero() { return arith::ConstantOp::create(b, b.getZeroAttr(element)); }
  /// Rows of the tile are written column by column: one element more keeps them out of each other's banks.
  int64_t rowPitch() const { return tile.rows + 4; }

  /// Copies the tile's part of an operand from step `k` on.
  void stage(unsigned operand, Value k) {
    bool isRow = operand == axes.rowOperand;
    const ContractionDim &dim = isRow ? axes.row : axes.lane;
    int64_t extent = isRow ? tile.rows : tile.columns, pitch = isRow ? rowPitch() : tile.columns;
    Value first = isRow ? firstRow : firstColumn, target = isRow ? rowTile : columnTile;
    bool isAlongDepth = depthDims.back().strides[operand] == 1 && dim.strides[operand] != 1;
    for (int64_t i = 0; i < extent * tile.depth; i += kTileThreads) {
      Value position = b.add(thread, i);
      Value along = isAlongDepth ? b.div(position, tile.depth) : b.rem(position, extent);
      Value step = isAlongDepth ? b.rem(position, tile.depth) : b.div(position, extent);
      Value index = b.add(first, along), at = b.add(k, step);
      Value isThere;
      if (dim.size % extent != 0)
        isThere = b.less(index, dim.size);
      if (depth % tile.depth != 0) {
        Value isDeep = b.less(at, depth);
        isThere = isThere ? arith::AndIOp::create(b, isThere, isDeep).getResult() : isDeep;
      }
      auto load = [&]() -> Value { return loadOperand(operand, dim, index, at); };
      Value value =
          isThere ? b.guarded(isThere, zero(), [&]() -> SmallVector<Value> { return {load()}; })[0] : load();
      memref::StoreOp::create(b, value, target, ValueRange{b.add(b.mul(step, pitch), along)});
    }
  }

  Value loadOperand(unsigned operand, const ContractionDim &dim, Value index, Value k) {
    Value at = b.add(places[operand], b.mul(index, dim.strides[operand]));
    SmallVector<int64_t> sizes;
    for (const ContractionDim &each : depthDims)
      sizes.push_back(each.size);
    for (auto [each, digit] : llvm::zip_equal(depthDims, delinearize(b, k, sizes)))
      at = b.add(at, b.mul(digit, each.strides[operand]));
    Value value = b.loadScalar(buffers[shape.operands[operand].buffer], at);
    Type narrow = shape.narrow(operand);
    return narrow ? extendToF32(b, b.getLoc(), value, narrow) : value;
  }

  Value rowOf(int64_t i) { return b.add(threadRow, i * kSide); }
  /// Runs of four columns (or two), as wide as the tile apart.
  int64_t run() const { return std::min<int64_t>(columnsPerThread, 4); }
  Value columnOf(int64_t j) {
    return b.add(b.mul(threadColumn, run()), j / run() * (kSide * run()) + j % run());
  }

  void multiply(int64_t step, SmallVectorImpl<Value> &sums) {
    SmallVector<Value> columns;
    for (int64_t j = 0; j < columnsPerThread; ++j)
      columns.push_back(b.loadScalar(columnTile, b.add(columnOf(j), step * tile.columns)));
    for (int64_t i = 0; i < rowsPerThread; ++i) {
      Value row = b.loadScalar(rowTile, b.add(rowOf(i), step * rowPitch()));
      for (int64_t j = 0; j < columnsPerThread; ++j) {
        Value &sum = sums[i * columnsPerThread + j];
        sum = multiplyAdd(b, b.getLoc(), row, columns[j], sum, job.options);
      }
    }
  }

  /// Some rows of every thread at a time.
  void finish(ArrayRef<Value> sums) {
    int64_t rowBytes = kSide * tile.columns * element.getIntOrFloatBitWidth() / 8;
    int64_t atOnce = std::clamp<int64_t>(kSumBytes / rowBytes, 1, rowsPerThread);
    Value sumTile = kernel.shared(b, element, atOnce * kSide * tile.columns);
    for (int64_t from = 0; from < rowsPerThread; from += atOnce) {
      if (from > 0)
        b.barrier();
      int64_t rows = std::min(atOnce, rowsPerThread - from);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columnsPerThread; ++j)
          memref::StoreOp::create(b, sums[(from + i) * columnsPerThread + j], sumTile,
                                  ValueRange{b.add(b.mul(rowOf(i), tile.columns), columnOf(j))});
      b.barrier();
      b.loop(0, rows * kSide * tile.columns, kTileThreads, [&](Value start) {
        Value position = b.add(start, thread);
        Value row = b.add(b.add(firstRow, from * kSide), b.div(position, tile.columns));
        Value column = b.add(firstColumn, b.rem(position, tile.columns));
        Value isThere = arith::AndIOp::create(b, b.less(row, axes.row.size), b.less(column, axes.lane.size));
        b.guarded(isThere, [&] { store(row, column, b.loadScalar(sumTile, position)); });
      });
    }
  }

  void store(Value row, Value column, Value sum) {
    auto place = [&](unsigned operand) {
      Value at = b.add(places[operand], b.mul(row, axes.row.strides[operand]));
      at = b.add(at, b.mul(column, axes.lane.strides[operand]));
      return std::make_pair(buffers[shape.operands[operand].buffer], at);
    };
    finishElement(b, job.epilogue, place, sum);
  }

  KernelBuilder &kernel;
  const ContractionJob &job;
  const ContractionShape &shape;
  const ContractionAxes &axes;
  const ContractionTile &tile;
  ThreadBuilder &b;
  ArrayRef<Value> buffers;
  int64_t rowsPerThread, columnsPerThread;
  Type element;
  SmallVector<ContractionDim> depthDims;
  int64_t depth;             ///< of all of them
  SmallVector<Value> places; ///< of every operand at the block's outer indices
  Value thread, threadRow, threadColumn, firstRow, firstColumn, rowTile, columnTile;
};

} // namespace

void emitTiled(KernelBuilder &kernel, const ContractionJob &job, const ContractionTile &tile) {
  int64_t blocks = job.axes.outerTotal * llvm::divideCeilSigned(job.axes.row.size, tile.rows) *
                   llvm::divideCeilSigned(job.axes.lane.size, tile.columns);
  kernel.launch(blocks, kTileThreads, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
    TileEmitter(kernel, job, tile, b, arguments.buffers).emit();
  });
}

} // namespace ortc::gpu
