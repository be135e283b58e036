// The panels are those of the matrix unit. A word of a row is broadcast, a vector of columns is read as it lies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/PairBlock.h"

#include "compiler/backends/cpu/isa/Architecture.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

namespace {

constexpr int64_t kLanes = 16;
/// Rows whose sums are in registers: by two vectors of columns, sixteen chains hide the latency of a product.
constexpr int64_t kRows = 8;
/// Steps of k after which all rows of the block have read the same columns: 16 KiB of them stay in the first-level
/// cache.
constexpr int64_t kNearSteps = 8;
/// Pairs of k that the innermost loop's body has.
constexpr int64_t kPairs = 4;

class PairEmitter {
public:
  PairEmitter(OpBuilder &builder, Location loc, const Architecture &architecture, const BlockProduct &product)
      : b(builder), loc(loc), index(builder, loc), architecture(architecture), product(product) {}

  void emit();

private:
  VectorType sums() { return VectorType::get({kLanes}, b.getF32Type()); }
  VectorType words() { return VectorType::get({kLanes}, b.getI32Type()); }
  /// A loop over [begin, end) whose body takes and gives values.
  SmallVector<Value> loop(Value begin, Value end, int64_t step, ValueRange values,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  Offset sumAt(Offset group, int64_t row, int64_t column);
  SmallVector<Value> multiply(Offset group, Value step, Value pairs, ValueRange before);

  OpBuilder &b;
  Location loc;
  IndexBuilder index;
  const Architecture &architecture;
  const BlockProduct &product;
};

SmallVector<Value> PairEmitter::loop(Value begin, Value end, int64_t step, ValueRange values,
                                     llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, begin, end, index.constant(step), values);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!values.empty())
    scf::YieldOp::create(b, loc, results);
  return llvm::to_vector(ValueRange(loop.getResults()));
}

/// Where the sums of a row of a group lie: tiles of 16 rows, two groups each.
Offset PairEmitter::sumAt(Offset group, int64_t row, int64_t column) {
  Offset tile = index.mul(index.div(group, 2), 2 * kTileWords);
  Offset line = index.add(index.mul(index.rem(group, 2), kRows), row);
  return index.add(index.add(product.sumsAt, tile),
                   index.add(index.mul(line, kTileLines), column * kTileWords));
}

/// The sums of a group's rows with the products of the pairs of a step of k from `pairs` on.
SmallVector<Value> PairEmitter::multiply(Offset group, Value step, Value pairs, ValueRange before) {
  SmallVector<Value> values(before);
  Offset panel = index.mul(step, stepWordsOf(1));
  Offset columns = index.add(index.add(product.columnsAt, panel), index.mul(pairs, kLanes));
  Offset rows = index.add(index.add(product.rowsAt, panel), index.mul(group, kRows * kLanes));
  rows = index.add(rows, pairs);
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    SmallVector<Value> right;
    for (int64_t j = 0; j < product.columnTiles; ++j) {
      Value at = index.value(index.add(columns, j * kTileWords + pair * kLanes));
      right.push_back(vector::LoadOp::create(b, loc, words(), product.columns, at));
    }
    for (int64_t row = 0; row < kRows; ++row) {
      Value at = index.value(index.add(rows, row * kLanes + pair));
      Value word = memref::LoadOp::create(b, loc, product.rows, at);
      Value left = vector::BroadcastOp::create(b, loc, words(), word);
      for (int64_t j = 0; j < product.columnTiles; ++j) {
        Value &sum = values[row * product.columnTiles + j];
        sum = architecture.emitPairProduct(b, loc, sum, left, right[j]);
      }
    }
  }
  return values;
}

void PairEmitter::emit() {
  Value zero = index.constant(0);
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(sums()));
  auto forSums = [&](Offset group, llvm::function_ref<void(Value)> use) {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t j = 0; j < product.columnTiles; ++j)
        use(index.value(sumAt(group, row, j)));
  };
  loop(zero, product.steps, kNearSteps, {}, [&](Value first, ValueRange) -> SmallVector<Value> {
    Value end = index.value(index.min(index.add(first, kNearSteps), product.steps));
    Value begins = arith::AndIOp::create(b, loc, product.isFirst, index.equal(first, 0));
    loop(zero, index.constant(product.rowTiles * kTileLines / kRows), 1, {},
         [&](Value group, ValueRange) -> SmallVector<Value> {
           SmallVector<Value> before;
           forSums(group, [&](Value at) {
             Value sum = vector::LoadOp::create(b, loc, sums(), product.sums, at);
             before.push_back(arith::SelectOp::create(b, loc, begins, zeros, sum));
           });
           SmallVector<Value> after = loop(first, end, 1, before, [&](Value step, ValueRange values) {
             Value pairs = index.constant(kTileDepth / 2);
             return loop(zero, pairs, kPairs, values,
                         [&](Value from, ValueRange inner) { return multiply(group, step, from, inner); });
           });
           auto next = after.begin();
           forSums(group, [&](Value at) { vector::StoreOp::create(b, loc, *next++, product.sums, at); });
           return {};
         });
    return {};
  });
}

} // namespace

void emitPairBlock(OpBuilder &builder, Location loc, const Architecture &architecture,
                   const BlockProduct &product) {
  PairEmitter(builder, loc, architecture, product).emit();
}

} // namespace ortc::cpu
