// Sums of rows at places that indices name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table is walked once, in blocks of rows that stay in a cache while they are zeroed and added to. Every
// block looks through all indices for its own, some at once: that takes no memory, and the order of a row's
// sums does not depend on the blocks.
#include "compiler/backends/cpu/loop/ScatterKernel.h"

#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/StorageConversion.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Indices compared at once.
static constexpr int64_t kCompared = 16;

namespace {

class BlockScatter {
public:
  BlockScatter(LoopBuilder &builder, const ScatterPlan &plan, Type element, Value indices, Value updates,
               const ScatterBlock &block, const Target &target)
      : b(builder), plan(plan), element(element), indices(indices), updates(updates), block(block),
        width(target.lanes(32)) {
    rows = plan.rows % std::min(plan.blockRows, plan.rows) == 0
               ? b.index(std::min(plan.blockRows, plan.rows))
               : b.minimum(b.index(plan.blockRows), b.sub(b.index(plan.rows), block.row));
  }

  void clear() {
    if (plan.columnBlocks() > 1)
      return b.loop({b.index(0), rows}, 1, [&](Value row) {
        overColumns([&](Value column, int64_t lanes) { clearAt(place(row, column), lanes); });
      });
    Value size = b.mul(rows, plan.columns), whole = b.mul(b.div(size, width), width);
    b.loop({b.index(0), whole}, width, [&](Value i) { clearAt(b.add(block.start, i), width); });
    b.loop({whole, size}, 1, [&](Value i) { clearAt(b.add(block.start, i), 1); });
  }

  void add() {
    if (!plan.cutsRows())
      return b.loop(0, plan.count, 1, [&](Value i) { addRow(i, asIndex(b.loadScalar(indices, i))); });
    Type type = cast<MemRefType>(indices.getType()).getElementType();
    Value first = arith::IndexCastOp::create(b, type, block.row),
          number = arith::IndexCastOp::create(b, type, rows);
    // Rows from the first one on: indices before it are large as numbers without sign.
    auto isInside = [&](Value row, Value limit) {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, limit);
    };
    auto addInside = [&](Value i) {
      Value row = arith::SubIOp::create(b, b.loadScalar(indices, i), first);
      onlyIf(isInside(row, number), [&] { addRow(i, asIndex(row)); });
    };
    int64_t whole = plan.count / kCompared * kCompared;
    b.loop(0, whole, kCompared, [&](Value i) {
      Value some = arith::SubIOp::create(b, b.load(indices, i, kCompared), b.spread(first, kCompared));
      Value any = vector::ReductionOp::create(b, vector::CombiningKind::OR,
                                              isInside(some, b.spread(number, kCompared)));
      onlyIf(any, [&] { b.loop({i, b.add(i, kCompared)}, 1, addInside); });
    });
    b.loop(whole, plan.count, 1, addInside);
  }

private:
  Value asIndex(Value value) { return arith::IndexCastOp::create(b, b.getIndexType(), value); }
  Value place(Value row, Value column) { return b.add(block.start, b.add(b.mul(row, plan.columns), column)); }
  void onlyIf(Value condition, llvm::function_ref<void()> body) {
    auto op = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.thenBlock());
    body();
  }
  void clearAt(Value position, int64_t lanes) {
    auto type = VectorType::get({lanes}, bufferType(element));
    b.store(arith::ConstantOp::create(b, b.getZeroAttr(type)), block.buffer, position);
  }

  /// The block's columns in vectors: body(column, lanes).
  void overColumns(llvm::function_ref<void(Value, int64_t)> body) {
    int64_t whole = plan.columns / width * width, rest = plan.columns - whole;
    bool isOnly = plan.columnBlocks() == 1;
    Value end = isOnly ? b.index(whole) : b.minimum(b.add(block.column, plan.blockColumns), b.index(whole));
    b.loop({isOnly ? b.index(0) : block.column, end}, width, [&](Value column) { body(column, width); });
    if (rest == 0)
      return;
    if (isOnly)
      return body(b.index(whole), rest);
    Value last = b.index((plan.columnBlocks() - 1) * plan.blockColumns);
    onlyIf(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block.column, last),
           [&] { body(b.index(whole), rest); });
  }

  /// Adds update `i` to `row`, counted from the block's first one.
  void addRow(Value i, Value row) {
    Value from = b.mul(b.add(b.mul(block.outer, plan.count), i), plan.columns);
    overColumns([&](Value column, int64_t lanes) {
      Value at = place(row, column), update = b.load(updates, b.add(from, column), lanes);
      b.store(combineStored(b, nn::ReduceKind::sum, element, b.load(block.buffer, at, lanes), update),
              block.buffer, at);
    });
  }

  LoopBuilder &b;
  const ScatterPlan &plan;
  Type element;
  Value indices, updates;
  const ScatterBlock &block;
  int64_t width;
  Value rows; ///< of this block
};

} // namespace

void emitScatterBlock(LoopBuilder &builder, const ScatterPlan &plan, Type element, Value indices,
                      Value updates, const ScatterBlock &block, const Target &target) {
  BlockScatter scatter(builder, plan, element, indices, updates, block, target);
  scatter.clear();
  scatter.add();
}

} // namespace ortc::cpu
