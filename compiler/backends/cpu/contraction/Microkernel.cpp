// Emits the reduction loops of a register tile. Accumulators are iteration arguments, so nothing has to be hoisted
// later; a broadcast of A serves a whole row (folding it into every fma as a memory operand would make loads the limit
// on CPUs with two fma a cycle).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/Microkernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

namespace {

class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const MicrokernelTile &tile, ArrayRef<ReductionLoop> loops,
          const MicrokernelOperands &operands, bool fma)
      : builder(builder), loc(loc), index(builder, loc), tile(tile), loops(loops), operands(operands),
        fma(fma) {}

  /// Emits loops `depth` and inner; `position` holds the indices of the outer ones.
  SmallVector<Value> emit(size_t depth, SmallVector<Offset> position, SmallVector<Value> accumulators);

private:
  using Body = llvm::function_ref<SmallVector<Value>(Offset, SmallVector<Value>)>;
  SmallVector<Value> loop(Offset from, Offset to, int64_t step, SmallVector<Value> accumulators, Body body);
  SmallVector<Value> step(ArrayRef<Offset> position, SmallVector<Value> accumulators);

  OpBuilder &builder;
  Location loc;
  IndexBuilder index;
  const MicrokernelTile &tile;
  ArrayRef<ReductionLoop> loops;
  const MicrokernelOperands &operands;
  bool fma;
};

} // namespace

SmallVector<Value> Emitter::loop(Offset from, Offset to, int64_t step, SmallVector<Value> accumulators,
                                 Body body) {
  if (from.isStatic() && to.isStatic() && to.constant <= from.constant)
    return accumulators;
  if (from.isStatic() && to.isStatic() && to.constant - from.constant == step)
    return body(from, accumulators);
  auto loop = scf::ForOp::create(builder, loc, index.value(from), index.value(to), index.constant(step),
                                 accumulators);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results =
      body(Offset(loop.getInductionVar()), SmallVector<Value>(loop.getRegionIterArgs()));
  scf::YieldOp::create(builder, loc, results);
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> Emitter::emit(size_t depth, SmallVector<Offset> position,
                                 SmallVector<Value> accumulators) {
  if (depth == loops.size())
    return step(position, std::move(accumulators));
  const ReductionLoop &current = loops[depth];
  auto at = [&](Offset k, SmallVector<Value> values) {
    SmallVector<Offset> inner = position;
    inner.push_back(k);
    return emit(depth + 1, inner, std::move(values));
  };
  int64_t unroll = current.unroll;
  Offset whole = index.mul(index.div(current.count, unroll), unroll);
  accumulators = loop(0, whole, unroll, std::move(accumulators), [&](Offset k, SmallVector<Value> values) {
    for (int64_t u = 0; u < unroll; ++u)
      values = at(index.add(k, u), std::move(values));
    return values;
  });
  if (unroll == 1)
    return accumulators;
  if (whole.isStatic() && current.count.isStatic()) {
    for (int64_t k = whole.constant; k < current.count.constant; ++k)
      accumulators = at(k, std::move(accumulators));
    return accumulators;
  }
  return loop(whole, current.count, 1, std::move(accumulators), at);
}

SmallVector<Value> Emitter::step(ArrayRef<Offset> position, SmallVector<Value> accumulators) {
  SmallVector<Value> columns;
  for (int64_t v = 0; v < tile.vectors; ++v)
    columns.push_back(operands.loadB(v, position));
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value scalar = operands.loadA(r, position);
    Value row = vector::BroadcastOp::create(builder, loc, columns[0].getType(), scalar);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value &sum = accumulators[r * tile.vectors + v];
      if (fma)
        sum = math::FmaOp::create(builder, loc, row, columns[v], sum);
      else
        sum = arith::AddFOp::create(builder, loc, sum, arith::MulFOp::create(builder, loc, row, columns[v]));
    }
  }
  return accumulators;
}

SmallVector<Value> emitMicrokernel(OpBuilder &builder, Location loc, const MicrokernelTile &tile,
                                   ArrayRef<ReductionLoop> loops, ValueRange init,
                                   const MicrokernelOperands &operands, bool fma) {
  return Emitter(builder, loc, tile, loops, operands, fma).emit(0, {}, SmallVector<Value>(init));
}

bool fitsRegisters(int64_t rows, int64_t vectors, const Target &target, bool usesFma) {
  int64_t others = vectors + 1 + (usesFma ? 0 : 1);
  return rows * vectors <= target.machine.tiles.accumulators && (rows == 1 || !target.isa.forSize) &&
         rows * vectors + others <= target.isa.vectorRegisters;
}

SmallVector<Value> emitTranspose(OpBuilder &builder, Location loc, ArrayRef<Value> rows) {
  // Round with distance d swaps the off-diagonal d x d blocks of every 2d x 2d block.
  SmallVector<Value> current(rows);
  int64_t n = rows.size(), lanes = cast<VectorType>(rows[0].getType()).getDimSize(0);
  for (int64_t distance = 1; distance < n; distance *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool upper = (lane & distance) != 0;
      low.push_back(upper ? lanes + lane - distance : lane);
      high.push_back(upper ? lanes + lane : lane + distance);
    }
    for (int64_t row = 0; row < n; ++row) {
      if (row & distance)
        continue;
      Value a = current[row], b = current[row + distance];
      current[row] = vector::ShuffleOp::create(builder, loc, a, b, low);
      current[row + distance] = vector::ShuffleOp::create(builder, loc, a, b, high);
    }
  }
  return current;
}

} // namespace ortc::cpu
