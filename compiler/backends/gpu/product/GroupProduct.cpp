// Products on tensor cores by groups of warps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of a step are made while those of the next one begin: a group waits only for the step before. So when all
// threads meet in a step, nobody reads the stage of two steps ago, and copies for a later step go there.
#include "compiler/backends/gpu/product/GroupProduct.h"

#include "compiler/backends/gpu/product/GroupCore.h"
#include "compiler/backends/gpu/product/TensorCore.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

using Sums = SmallVector<Value>;

class GroupSummation {
public:
  GroupSummation(ThreadBuilder &b, const MatrixPlan &plan, ProductAccess &access, SharedTile &rows,
                 SharedTile &columns)
      : b(b), plan(plan), tile(plan.tile), access(access), rows(rows), columns(columns) {}

  Sums sum(IndexRange range) {
    // Steps that are copied ahead: of the other two stages, one is multiplied, and products may still read the one
    // before it.
    const int64_t ahead = tile.stages - 2, stageBytes = plan.stageBytes();
    auto copyAt = [&](Value start, Value stage) {
      copyStage(b, access, {start, range.end}, stage, rows, columns);
    };
    for (int64_t stage = 0; stage < ahead; ++stage)
      copyAt(b.add(range.begin, stage * tile.depth), b.index(stage * stageBytes));
    describe();
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    SmallVector<Value> carried{b.index(0), b.index(ahead * stageBytes)};
    carried.append(tile.warpRows * tile.warpColumns / kWarp, zero);
    // Sums of no step join those of others when these are there: else ptxas would wait for each product.
    SmallVector<Value> none(ArrayRef<Value>(carried).drop_front(2));
    return b.guarded(b.less(range.begin, range.end), none, [&] {
      carried = b.fold(range, tile.depth, carried, [&](Value start, ValueRange now) {
        waitForCopies(b, ahead - 1);
        fenceShared(b);
        b.barrier();
        copyAt(b.add(start, ahead * tile.depth), now[1]);
        SmallVector<Value> result{SharedTile::nextStage(b, plan, now[0]),
                                  SharedTile::nextStage(b, plan, now[1])};
        llvm::append_range(result, multiply(now[0], llvm::to_vector(now.drop_front(2))));
        return result;
      });
      return waitForProducts(b, 0, llvm::to_vector(ArrayRef<Value>(carried).drop_front(2)));
    });
  }

private:
  /// Where the group's products begin in the first stage: its rows are beside those of the other groups.
  void describe() {
    Value group = b.fromFirstLane(b.div(b.thread(), kWarp * kGroupWarps));
    Value first = rows.placeOf(b.index(0));
    rowOperand =
        describeOperand(b, b.advance(first, b.mul(group, rows.bytesOfRun(kGroupRows))), rows.panelBytes());
    columnOperand = describeOperand(b, columns.placeOf(b.index(0)), columns.panelBytes());
  }

  /// Adds the products of a stage.
  Sums multiply(Value stage, Sums sums) {
    Value ofRows = advanceOperand(b, rowOperand, stage), ofColumns = advanceOperand(b, columnOperand, stage);
    const int64_t products = tile.warpRows / kFragment, groups = tile.warps() / kGroupWarps;
    const int64_t perProduct = kFragment * tile.columns / kWarp;
    fenceSums(b);
    for (int64_t step = 0; step < tile.depth / kFragment; ++step)
      for (int64_t product = 0; product < products; ++product) {
        auto own = MutableArrayRef<Value>(sums).slice(product * perProduct, perProduct);
        int64_t further = product * groups * rows.bytesOfRun(kGroupRows) + rows.bytesOfSteps() * step;
        GroupOperand row{advanceOperand(b, ofRows, further), rows.areLinesAlongDepth()};
        GroupOperand column{advanceOperand(b, ofColumns, columns.bytesOfSteps() * step),
                            columns.areLinesAlongDepth()};
        llvm::copy(beginProduct(b, plan.format.number, row, column, ValueRange(own)), own.begin());
      }
    closeProducts(b);
    return waitForProducts(b, 1, sums);
  }

  ThreadBuilder &b;
  const MatrixPlan &plan;
  const MatrixTile &tile;
  ProductAccess &access;
  SharedTile &rows, &columns;
  Value rowOperand, columnOperand; ///< descriptors
};

} // namespace

SmallVector<Value> sumByGroups(ThreadBuilder &b, const MatrixPlan &plan, ProductAccess &access,
                               IndexRange range, SharedTile &rows, SharedTile &columns) {
  return GroupSummation(b, plan, access, rows, columns).sum(range);
}

} // namespace ortc::gpu
