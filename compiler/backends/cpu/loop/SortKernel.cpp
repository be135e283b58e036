// The order of the elements of a column.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few elements of many are kept in an ordered list, in which each element of the column takes its place or
// none. Otherwise runs are merged, from single elements to the whole, between two halves of the workspace.
// Both compare keys only and let the earlier one of equals stand first.
#include "compiler/backends/cpu/loop/SortKernel.h"

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/kernels/sort/SortForm.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

struct SortShape : SortColumn {
  Type element, key;

  explicit SortShape(nn::ArgSortOp op)
      : SortColumn(op), element(cast<RankedTensorType>(op.getInput().getType()).getElementType()),
        key(isa<FloatType>(element) ? accumulatorType(element) : bufferType(element)) {}
  /// Elements of the workspace: keys, and as many positions.
  int64_t slots() const { return selects() ? taken : 2 * axis; }
  int64_t keyBytes() const { return llvm::alignTo(slots() * key.getIntOrFloatBitWidth() / 8, 64); }
};

class ColumnSorter : SortShape {
public:
  ColumnSorter(LoopBuilder &builder, nn::ArgSortOp op, const KernelFunction &kernel, Value column)
      : SortShape(op), b(builder), op(op), kernel(kernel) {
    Location loc = b.getLoc();
    keys = kernel.workspaceView(b, loc, 0, key, slots());
    order = kernel.workspaceView(b, loc, keyBytes(), b.getI32Type(), slots());
    outer = b.div(column, inner);
    within = b.rem(column, inner);
  }

  void emit() {
    Value from = selects() ? select() : merge();
    Type type = cast<RankedTensorType>(op.getType()).getElementType();
    b.loop(0, taken, 1, [&](Value i) {
      Value position = b.loadScalar(order, b.add(from, i));
      if (type != position.getType())
        position = arith::ExtSIOp::create(b, type, position);
      store(position, kernel.buffers[1], at(taken, i));
    });
  }

private:
  Value at(int64_t size, Value i) { return b.add(b.mul(b.add(b.mul(outer, size), i), inner), within); }
  void store(Value value, Value buffer, Value position) {
    memref::StoreOp::create(b, value, buffer, ValueRange{position});
  }
  Value keyAt(Value i) {
    Value value = b.loadScalar(kernel.buffers[0], at(axis, i));
    return element.isF16() || element.isBF16() ? extendToF32(b, b.getLoc(), value, element) : value;
  }
  Value logical(Value x, Value y, bool both) {
    return both ? arith::AndIOp::create(b, x, y).getResult() : arith::OrIOp::create(b, x, y).getResult();
  }
  Value choose(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value below(Value i, Value limit) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, limit); }

  /// Whether x stands before y wherever it comes from.
  Value before(Value x, Value y) {
    if (op.getDescending())
      std::swap(x, y);
    if (!isa<FloatType>(key)) // booleans are bytes of 0 and 1
      return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
    Value less = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
    Value xIsNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, x, x);
    Value yIsNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
    return logical(less, logical(xIsNumber, yIsNan, true), false);
  }

  /// The first `taken` elements in a list. An element before the last one of the list pushes those behind its
  /// place down.
  Value select() {
    Value none = arith::ConstantIntOp::create(b, -1, 32);
    b.loop(0, taken, 1, [&](Value slot) { store(none, order, slot); });
    auto comesBefore = [&](Value x, Value slot) {
      Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.loadScalar(order, slot),
                                            arith::ConstantIntOp::create(b, 0, 32));
      return logical(isEmpty, before(x, b.loadScalar(keys, slot)), false);
    };
    b.loop(0, axis, 1, [&](Value i) {
      Value x = keyAt(i), number = b.toI32(i);
      auto enters = scf::IfOp::create(b, comesBefore(x, b.index(taken - 1)), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(enters.thenBlock());
      // From the last slot up: slots after its place take what stood above them.
      b.loop(0, taken - 1, 1, [&](Value back) {
        Value slot = b.sub(b.index(taken - 1), back), above = b.sub(slot, b.index(1));
        Value moves = comesBefore(x, above), lands = comesBefore(x, slot);
        Value keyHere = choose(lands, x, b.loadScalar(keys, slot)),
              numberHere = choose(lands, number, b.loadScalar(order, slot));
        store(choose(moves, b.loadScalar(keys, above), keyHere), keys, slot);
        store(choose(moves, b.loadScalar(order, above), numberHere), order, slot);
      });
      Value first = b.index(0), lands = comesBefore(x, first);
      store(choose(lands, x, b.loadScalar(keys, first)), keys, first);
      store(choose(lands, number, b.loadScalar(order, first)), order, first);
    });
    return b.index(0);
  }

  /// Merges runs of 1, 2, 4, ... elements; returns where the last pass has written.
  Value merge() {
    b.loop(0, axis, 1, [&](Value i) {
      store(keyAt(i), keys, i);
      store(b.toI32(i), order, i);
    });
    Value size = b.index(axis);
    int64_t count = passes();
    b.fold({b.index(0), b.index(count)}, 1, {b.index(1)},
           [&](Value pass, ValueRange width) -> SmallVector<Value> {
             Value from = b.mul(b.rem(pass, 2), axis), to = b.sub(size, from), twice = b.mul(width[0], 2);
             Value runs = arith::CeilDivUIOp::create(b, size, twice);
             b.loop({b.index(0), runs}, 1, [&](Value run) {
               Value begin = arith::MulIOp::create(b, run, twice),
                     middle = b.minimum(b.add(begin, width[0]), size);
               mergeRuns(from, to, begin, middle, b.minimum(b.add(begin, twice), size));
             });
             return {twice};
           });
    return b.index(count % 2 * axis);
  }

  void mergeRuns(Value from, Value to, Value begin, Value middle, Value end) {
    Value last = b.index(axis - 1);
    b.fold({begin, end}, 1, {begin, middle}, [&](Value place, ValueRange next) -> SmallVector<Value> {
      Value left = b.add(from, b.minimum(next[0], last)), right = b.add(from, b.minimum(next[1], last));
      Value leftKey = b.loadScalar(keys, left), rightKey = b.loadScalar(keys, right);
      Value leftIsDone = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, next[0], middle);
      Value takesRight =
          logical(below(next[1], end), logical(leftIsDone, before(rightKey, leftKey), false), true);
      store(choose(takesRight, rightKey, leftKey), keys, b.add(to, place));
      store(b.loadScalar(order, choose(takesRight, right, left)), order, b.add(to, place));
      return {choose(takesRight, next[0], b.add(next[0], 1)), choose(takesRight, b.add(next[1], 1), next[1])};
    });
  }

  LoopBuilder &b;
  nn::ArgSortOp op;
  const KernelFunction &kernel;
  Value keys, order, outer, within;
};

} // namespace

int64_t workspaceOfSort(nn::ArgSortOp op) {
  SortShape shape(op);
  return shape.keyBytes() + shape.slots() * 4;
}

void emitSort(LoopBuilder &builder, nn::ArgSortOp op, const KernelFunction &kernel, Value column) {
  ColumnSorter(builder, op, kernel, column).emit();
}

} // namespace ortc::cpu
