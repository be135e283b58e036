// Products tile by tile: operands go through shared memory, sums stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every sum is that of k from the first to the last of its part, whatever the tile; what is beyond an edge counts as
// zero. Finished sums go through shared memory, too: they are stored by one loop over the elements of the tile,
// neighbours by neighbours.
#include "compiler/backends/gpu/product/TiledProduct.h"

#include "compiler/kernels/SumOrder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

/// Threads lie in a square; each has every kSide-th row and a run of columns of the tile.
static constexpr int64_t kSide = 16;
static_assert(kSide * kSide == kTileThreads);
/// The largest depth of all tiles. Parts of the depth are whole tiles.
static constexpr int64_t kDeepestTile = 16;
static_assert(kPartDepthUnit % kDeepestTile == 0);

bool isNarrow(const ProductShape &shape) { return std::min(shape.rows, shape.columns) < kSide / 2; }

/// Elements of a run that one access of shared memory reads.
static int64_t runOf(int64_t count, Type element) {
  return std::min<int64_t>(count, 128 / element.getIntOrFloatBitWidth());
}

/// The same of the rows of a thread. With 64 sums there are no registers for more than one at a time: ptxas keeps
/// within the 128 that let two blocks reside, and would spill.
static int64_t rowRunOf(int64_t rows, int64_t columns, Type element) {
  return rows * columns >= 64 ? 1 : runOf(rows, element);
}

/// Instructions of a thread as ptxas 13 makes them for sm_90: a multiplication each (those of f64 take two cycles),
/// one access a run of operands, and some for each element that is copied, most of them for its index.
static TileCandidate estimateTile(const ProductShape &shape, int64_t rows, int64_t columns, int64_t depth) {
  constexpr double kStaged = 8, kGathered = 17, kLoop = 20, kStored = 20, kEnds = 2500;
  constexpr int64_t kWarps = kTileThreads / kWarp, kSchedulers = 4;
  constexpr int64_t kRegisters = (64 << 10) / kTileThreads, kOthers = 48, kOthersOfGathered = 64;
  bool isDouble = shape.element.isF64();
  int64_t rowsPerThread = rows / kSide, columnsPerThread = columns / kSide;
  int64_t sums = rowsPerThread * columnsPerThread;
  int64_t reads = rowsPerThread / rowRunOf(rowsPerThread, columnsPerThread, shape.element) +
                  columnsPerThread / runOf(columnsPerThread, shape.element);
  double staged =
      (shape.isGathered ? kGathered : kStaged) * static_cast<double>((rows + columns) * depth) / kTileThreads;
  int64_t registers = (shape.isGathered ? kOthersOfGathered : kOthers) + sums * (isDouble ? 2 : 1) * 5 / 4;
  auto cyclesOf = [&](double instructions) {
    return instructions * kWarps / kSchedulers / kernels::ReferenceGpu::kIssueShare;
  };
  double multiplied = static_cast<double>(depth * (sums * (isDouble ? 2 : 1) + reads));
  return {rows,
          columns,
          depth,
          cyclesOf(multiplied + staged + kLoop),
          kernels::ReferenceGpu::kStepLatency,
          kEnds + cyclesOf(kStored * static_cast<double>(sums)),
          kRegisters / registers};
}

SmallVector<TileCandidate> listTiles(const ProductShape &shape) {
  SmallVector<TileCandidate> tiles;
  int64_t most = shape.element.isF64() ? 64 : 128;
  // A tile is no larger than it must be.
  for (int64_t rows = kSide; rows <= most; rows *= 2) {
    for (int64_t columns = kSide; columns <= most; columns *= 2) {
      int64_t depth = std::min(rows, columns) == 128 ? 8 : kDeepestTile;
      tiles.push_back(estimateTile(shape, rows, columns, depth));
      if (columns >= shape.columns)
        break;
    }
    if (rows >= shape.rows)
      break;
  }
  return tiles;
}

namespace {

using Store = llvm::function_ref<void(Value part, Value product, Value row, Value column, Value sum)>;

class TileEmitter {
public:
  TileEmitter(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape, const ProductTile &tile,
              ProductAccess &access, const MathOptions &options, Store store)
      : kernel(kernel), b(b), shape(shape), tile(tile), access(access), options(options), store(store),
        rowsPerThread(tile.rows / kSide), columnsPerThread(tile.columns / kSide),
        rowRun(rowRunOf(rowsPerThread, columnsPerThread, shape.element)), element(shape.element) {}

  void emit() {
    int64_t rowTiles = llvm::divideCeilSigned(shape.rows, tile.rows),
            columnTiles = llvm::divideCeilSigned(shape.columns, tile.columns);
    thread = b.thread();
    auto digits = delinearize(b, b.block(), {shape.parts, shape.products, rowTiles, columnTiles});
    part = digits[0], product = digits[1];
    firstRow = b.mul(digits[2], tile.rows), firstColumn = b.mul(digits[3], tile.columns);
    access.begin(b, product);
    rowTile = kernel.shared(b, element, tile.depth * rowPitch());
    columnTile = kernel.shared(b, element, tile.depth * tile.columns);
    threadRow = b.div(thread, kSide), threadColumn = b.rem(thread, kSide);

    IndexRange range = rangeOf(b, shape, access, part);
    SmallVector<Value> sums(rowsPerThread * columnsPerThread, zero());
    sums = b.fold(range, tile.depth, sums, [&](Value k, ValueRange carried) {
      // Not before others have read what is written over.
      if ((shape.parts > 1 ? shape.partDepth() : shape.depth) > tile.depth)
        b.guarded(b.less(range.begin, k), [&] { b.barrier(); });
      stage(Side::row, k);
      stage(Side::column, k);
      b.barrier();
      SmallVector<Value> next = llvm::to_vector_of<Value>(carried);
      for (int64_t step = 0; step < tile.depth; ++step)
        multiply(step, next);
      return next;
    });
    finish(sums);
  }

private:
  Value zero() { return arith::ConstantOp::create(b, b.getZeroAttr(element)); }
  /// Rows of the tile are written column by column: four elements more keep them out of each other's banks.
  int64_t rowPitch() const { return tile.rows + 4; }

  /// Copies the tile's part of an operand from step `k` on.
  void stage(Side side, Value k) {
    bool isRow = side == Side::row;
    int64_t size = isRow ? shape.rows : shape.columns;
    int64_t extent = isRow ? tile.rows : tile.columns, pitch = isRow ? rowPitch() : tile.columns;
    Value first = isRow ? firstRow : firstColumn, target = isRow ? rowTile : columnTile;
    bool isAlongDepth = shape.layoutOf(side).isAlongDepth;
    for (int64_t i = 0; i < extent * tile.depth; i += kTileThreads) {
      Value position = b.add(thread, i);
      Value along = isAlongDepth ? b.div(position, tile.depth) : b.rem(position, extent);
      Value step = isAlongDepth ? b.rem(position, tile.depth) : b.div(position, extent);
      Value index = b.add(first, along);
      Value isThere;
      if (size % extent != 0)
        isThere = b.less(index, size);
      if (shape.depth % tile.depth != 0) { // all parts except the last are whole tiles
        Value isDeep = b.less(b.add(k, step), shape.depth);
        isThere = b.both(isThere, isDeep);
      }
      auto load = [&]() -> Value {
        return loadElement(b, shape, access, side, index, {k, step, tile.depth});
      };
      Value value =
          isThere ? b.guarded(isThere, zero(), [&]() -> SmallVector<Value> { return {load()}; })[0] : load();
      memref::StoreOp::create(b, value, target, ValueRange{b.add(b.mul(step, pitch), along)});
    }
  }

  /// Row or column `i` of those that a thread has: runs of neighbours, a run of each other thread between two.
  Value placeOf(Value member, int64_t run, int64_t i) {
    return b.add(b.mul(member, run), i / run * (kSide * run) + i % run);
  }
  Value rowOf(int64_t i) { return placeOf(threadRow, rowRun, i); }
  Value columnOf(int64_t j) { return placeOf(threadColumn, runOf(columnsPerThread, element), j); }

  void multiply(int64_t step, SmallVectorImpl<Value> &sums) {
    SmallVector<Value> columns, rows;
    for (int64_t j = 0; j < columnsPerThread; ++j)
      columns.push_back(b.loadScalar(columnTile, b.add(columnOf(j), step * tile.columns)));
    for (int64_t i = 0; i < rowsPerThread; ++i)
      rows.push_back(b.loadScalar(rowTile, b.add(rowOf(i), step * rowPitch())));
    for (int64_t i = 0; i < rowsPerThread; ++i)
      for (int64_t j = 0; j < columnsPerThread; ++j) {
        Value &sum = sums[i * columnsPerThread + j];
        sum = multiplyAdd(b, b.getLoc(), rows[i], columns[j], sum, options);
      }
  }

  /// Behind and before what is written for other threads: with one sum for each, a thread takes its own again.
  void exchange() {
    if (rowsPerThread * columnsPerThread > 1)
      b.barrier();
  }

  /// Some rows of every thread at a time, whole runs.
  void finish(ArrayRef<Value> sums) {
    int64_t left =
        kSharedBytes * 8 / element.getIntOrFloatBitWidth() - tile.depth * (rowPitch() + tile.columns);
    int64_t runs = left / (rowRun * kSide * tile.columns);
    int64_t atOnce = std::clamp<int64_t>(runs, 1, rowsPerThread / rowRun) * rowRun;
    Value sumTile = kernel.shared(b, element, atOnce * kSide * tile.columns);
    for (int64_t from = 0; from < rowsPerThread; from += atOnce) {
      if (from > 0)
        exchange();
      int64_t rows = std::min(atOnce, rowsPerThread - from);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columnsPerThread; ++j)
          memref::StoreOp::create(b, sums[(from + i) * columnsPerThread + j], sumTile,
                                  ValueRange{b.add(b.mul(rowOf(i), tile.columns), columnOf(j))});
      exchange();
      b.loop(0, rows * kSide * tile.columns, kTileThreads, [&](Value start) {
        Value position = b.add(start, thread);
        Value row = b.add(b.add(firstRow, from * kSide), b.div(position, tile.columns));
        Value column = b.add(firstColumn, b.rem(position, tile.columns));
        Value isThere = b.both(b.less(row, shape.rows), b.less(column, shape.columns));
        b.guarded(isThere, [&] { store(part, product, row, column, b.loadScalar(sumTile, position)); });
      });
    }
  }

  KernelBuilder &kernel;
  ThreadBuilder &b;
  const ProductShape &shape;
  const ProductTile &tile;
  ProductAccess &access;
  const MathOptions &options;
  Store store;
  int64_t rowsPerThread, columnsPerThread, rowRun;
  Type element;
  Value thread, threadRow, threadColumn, part, product, firstRow, firstColumn, rowTile, columnTile;
};

} // namespace

void emitTile(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape, const ProductTile &tile,
              ProductAccess &access, const MathOptions &options, Store store) {
  TileEmitter(kernel, b, shape, tile, access, options, store).emit();
}

} // namespace ortc::gpu
