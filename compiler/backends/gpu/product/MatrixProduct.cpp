// Products on tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/MatrixProduct.h"

#include "compiler/backends/gpu/product/BlockSums.h"
#include "compiler/backends/gpu/product/GroupCore.h"
#include "compiler/backends/gpu/product/GroupProduct.h"
#include "compiler/backends/gpu/product/TensorCore.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

using Store = llvm::function_ref<void(Value part, Value product, Value row, Value column, Value sum)>;

/// Sums of a warp in the order of its instructions, those of one beside each other, as the core has them.
using Sums = SmallVector<Value>;

class MatrixEmitter {
public:
  MatrixEmitter(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape, const MatrixPlan &plan,
                ProductAccess &access, Store store)
      : kernel(kernel), b(b), shape(shape), plan(plan), tile(plan.tile), access(access), store(store),
        core(*plan.core), rowTiles(tile.warpRows / kFragment),
        columnTiles(tile.warpColumns / core.pieceColumns()) {}

  void emit() {
    thread = b.thread();
    auto digits = delinearize(b, b.block(),
                              {shape.parts, shape.products, llvm::divideCeilSigned(shape.rows, tile.rows),
                               llvm::divideCeilSigned(shape.columns, tile.columns)});
    part = digits[0], product = digits[1];
    firstRow = b.mul(digits[2], tile.rows), firstColumn = b.mul(digits[3], tile.columns);
    Value warp = b.div(thread, core.lanes);
    int64_t warpsInRow = tile.columns / tile.warpColumns;
    warpRow = b.mul(b.div(warp, warpsInRow), tile.warpRows);
    warpColumn = b.mul(b.rem(warp, warpsInRow), tile.warpColumns);
    access.begin(b, product);
    Value space = kernel.sharedSpace(b, spaceBytes(), tile.isGrouped ? kGroupAlignment : kLineAlignment);
    SharedTile rows(b, shape, plan, Side::row, space, firstRow);
    SharedTile columns(b, shape, plan, Side::column, b.advance(space, plan.sideBytes(Side::row)),
                       firstColumn);
    IndexRange range = rangeOf(b, shape, access, part);
    if (tile.isGrouped) {
      Sums sums = sumByGroups(b, plan, access, range, rows, columns);
      return finish(sums, space);
    }
    rows.prepareFragments(warpRow);
    columns.prepareFragments(warpColumn);
    Sums sums;
    for (int64_t i = 0; i < rowTiles * columnTiles; ++i)
      llvm::append_range(sums, core.zeros(b));
    sums = tile.isAsync ? sumCopied(range, rows, columns, sums) : sumLoaded(range, rows, columns, sums);
    finish(sums, rows.placeOf(lastStage));
  }

private:
  /// All stages; sums go where the last one was, or all of them.
  int64_t spaceBytes() const {
    int64_t stageBytes = plan.stageBytes();
    int64_t sumBytes = warpsInColumn() * kFragment * pitch() * 4;
    if (tile.isGrouped)
      return std::max(tile.stages * stageBytes, sumBytes);
    return (tile.stages - 1) * stageBytes + std::max(stageBytes, sumBytes);
  }
  int64_t warpsInColumn() const { return tile.rows / tile.warpRows; }

  Value next(Value stage) { return SharedTile::nextStage(b, plan, stage); }

  Value previous(Value stage) {
    if (tile.stages == 1)
      return stage;
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, stage, b.index(0));
    const int64_t bytes = plan.stageBytes();
    return b.choose(isFirst, b.index((tile.stages - 1) * bytes), b.sub(stage, b.index(bytes)));
  }

  /// Numbers go through registers into two stages by turns: what is loaded for a stage arrives while the one before is
  /// multiplied, and nobody writes to a stage that others may still read. Where there is room for one stage only, all
  /// have to be through.
  Sums sumLoaded(IndexRange range, SharedTile &rows, SharedTile &columns, Sums sums) {
    auto loadAt = [&](Value start) {
      SmallVector<Value> units = rows.load(access, start);
      llvm::append_range(units, columns.load(access, start));
      return units;
    };
    SmallVector<Value> none = rows.zeros();
    size_t ofRows = none.size();
    llvm::append_range(none, columns.zeros());
    Value isThere = b.less(range.begin, range.end);
    SmallVector<Value> carried = b.guarded(isThere, none, [&] { return loadAt(range.begin); });
    // After the last stage nobody reads what is carried: zeros would take instructions.
    SmallVector<Value> anything;
    for (Value unit : none)
      anything.push_back(LLVM::PoisonOp::create(b, unit.getType()));
    carried.push_back(b.index(0));
    llvm::append_range(carried, sums);
    carried = b.fold(range, tile.depth, carried, [&](Value start, ValueRange now) {
      Value stage = now[none.size()];
      if (tile.stages == 1)
        b.barrier();
      rows.store(now.take_front(ofRows), stage);
      columns.store(now.slice(ofRows, none.size() - ofRows), stage);
      Value following = b.add(start, tile.depth);
      if (!core.loadsBeforeBarrier)
        b.barrier();
      SmallVector<Value> result =
          b.guarded(b.less(following, range.end), anything, [&] { return loadAt(following); });
      if (core.loadsBeforeBarrier)
        b.barrier();
      result.push_back(next(stage));
      llvm::append_range(result,
                         multiply(rows, columns, stage, llvm::to_vector(now.drop_front(none.size() + 1))));
      return result;
    });
    lastStage = previous(carried[none.size()]);
    return Sums(llvm::drop_begin(carried, none.size() + 1));
  }

  /// Copies run several stages ahead.
  Sums sumCopied(IndexRange range, SharedTile &rows, SharedTile &columns, Sums sums) {
    auto copyAt = [&](Value start, Value stage) {
      copyStage(b, access, {start, range.end}, stage, rows, columns);
    };
    const int64_t stageBytes = plan.stageBytes();
    for (int64_t stage = 0; stage + 1 < tile.stages; ++stage)
      copyAt(b.add(range.begin, stage * tile.depth), b.index(stage * stageBytes));
    SmallVector<Value> carried{b.index(0), b.index((tile.stages - 1) * stageBytes)};
    llvm::append_range(carried, sums);
    carried = b.fold(range, tile.depth, carried, [&](Value start, ValueRange now) {
      waitForCopies(b, tile.stages - 2);
      b.barrier();
      copyAt(b.add(start, (tile.stages - 1) * tile.depth), now[1]);
      SmallVector<Value> result{next(now[0]), next(now[1])};
      llvm::append_range(result, multiply(rows, columns, now[0], llvm::to_vector(now.drop_front(2))));
      return result;
    });
    lastStage = previous(carried[0]);
    return Sums(llvm::drop_begin(carried, 2));
  }

  /// Adds the products of a stage.
  Sums multiply(SharedTile &rows, SharedTile &columns, Value stage, Sums sums) {
    Value rowPlace = rows.placeOf(stage), columnPlace = columns.placeOf(stage);
    const int64_t steps = tile.depth / kFragment;
    if (!plan.format.isExact()) {
      for (int64_t first = 0; first < steps; first += kBlockSteps)
        for (int64_t row = 0; row < rowTiles; ++row)
          addBlock(b, plan, loadBlock(rows, rowPlace, row, first, plan.format.rowParts), columns, columnPlace,
                   0, first,
                   MutableArrayRef<Value>(sums).slice(row * columnTiles * core.sumValues,
                                                      columnTiles * core.sumValues));
      return sums;
    }
    for (int64_t step = 0; step < steps; ++step) {
      SmallVector<SmallVector<Value>> ofRows, ofColumns;
      for (int64_t row = 0; row < rowTiles; ++row)
        ofRows.push_back(rows.loadFragment(rowPlace, row, step, 0));
      for (int64_t column = 0; column < columnTiles; column += core.pieces)
        ofColumns.push_back(columns.loadFragment(columnPlace, column / core.pieces, step, 0));
      for (int64_t row = 0; row < rowTiles; ++row)
        for (int64_t column = 0; column < columnTiles; ++column)
          addProduct(ofRows[row], ofColumns[column / core.pieces], column % core.pieces,
                     sumsOf(sums, row * columnTiles + column));
    }
    return sums;
  }

  /// Those of one instruction.
  MutableArrayRef<Value> sumsOf(MutableArrayRef<Value> sums, int64_t instruction) {
    return sums.slice(instruction * core.sumValues, core.sumValues);
  }

  void addProduct(ValueRange rows, ValueRange columns, int64_t piece, MutableArrayRef<Value> sums) {
    llvm::copy(core.multiply(b, plan.format.number, rows, columns, piece, ValueRange(sums)), sums.begin());
  }

  /// Distance of rows of sums in shared memory, in elements.
  int64_t pitch() const { return tile.columns + core.sumPadding; }

  /// Sums go through shared memory, at `place`, 16 rows of every warp at a time: one loop stores them, neighbours by
  /// neighbours.
  void finish(MutableArrayRef<Value> sums, Value place) {
    const int64_t rowsAtOnce = warpsInColumn() * kFragment;
    Value lane = b.rem(thread, core.lanes);
    Value top = b.add(b.mul(b.div(warpRow, tile.warpRows), kFragment), core.sumRowOf(b, lane));
    Value left = b.add(warpColumn, core.sumColumnOf(b, lane));
    for (int64_t row = 0; row < rowTiles; ++row) {
      b.barrier();
      for (int64_t column = 0; column < columnTiles; ++column) {
        SmallVector<Value> elements = core.elementsOf(b, sumsOf(sums, row * columnTiles + column));
        for (size_t run = 0; run < elements.size() / core.run; ++run) {
          Value line = b.add(top, static_cast<int64_t>(run) * core.rowStep);
          int64_t further = column * core.pieceColumns() + static_cast<int64_t>(run) * core.columnStep;
          Value at = b.add(b.mul(line, pitch()), b.add(left, further));
          b.storeRun(b.runOf(ArrayRef<Value>(elements).slice(run * core.run, core.run)),
                     b.advance(place, b.mul(at, 4)));
        }
      }
      b.barrier();
      b.loop(0, rowsAtOnce * tile.columns, plan.threads(), [&](Value start) {
        Value position = b.add(start, thread);
        Value line = b.div(position, tile.columns), column = b.rem(position, tile.columns);
        Value ofTile = tile.isGrouped ? b.add(line, row * rowsAtOnce)
                                      : b.add(b.mul(b.div(line, kFragment), tile.warpRows),
                                              b.add(b.rem(line, kFragment), row * kFragment));
        Value resultRow = b.add(firstRow, ofTile), resultColumn = b.add(firstColumn, column);
        Value isThere = b.both(b.less(resultRow, shape.rows), b.less(resultColumn, shape.columns));
        b.guarded(isThere, [&] {
          Value from = b.advance(place, b.mul(b.add(b.mul(line, pitch()), column), 4));
          store(part, product, resultRow, resultColumn, b.elementsOf(b.loadRun(from, b.getF32Type(), 1))[0]);
        });
      });
    }
  }

  KernelBuilder &kernel;
  ThreadBuilder &b;
  const ProductShape &shape;
  const MatrixPlan &plan;
  const MatrixTile &tile;
  ProductAccess &access;
  Store store;
  const MatrixCore &core;
  int64_t rowTiles, columnTiles; ///< instructions of a warp for a step of the depth
  Value thread, part, product, firstRow, firstColumn, warpRow, warpColumn;
  Value lastStage; ///< that was multiplied
};

} // namespace

void emitMatrixTile(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape,
                    const MatrixPlan &plan, ProductAccess &access, Store store) {
  MatrixEmitter(kernel, b, shape, plan, access, store).emit();
}

} // namespace ortc::gpu
