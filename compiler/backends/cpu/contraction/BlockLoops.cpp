// Control flow of contraction kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/BlockLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

void BlockLoops::loop(Offset from, Offset to, int64_t step, Body body) {
  if (from.isStatic() && to.isStatic() && to.constant <= from.constant)
    return;
  if (from.isStatic() && to.isStatic() && to.constant - from.constant <= step)
    return body(from);
  auto loop = scf::ForOp::create(builder, loc, index.value(from), index.value(to), index.constant(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(Offset(loop.getInductionVar()));
}

void BlockLoops::guarded(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.getThenRegion().front());
  body();
}

ChunkRange BlockLoops::rangeOf(Offset chunk, int64_t count, int64_t size, int64_t total) {
  if (count == 1)
    return {0, total, Value()};
  ChunkRange range;
  range.begin = index.mul(chunk, size);
  range.end = index.min(index.add(range.begin, size), total);
  range.isLast = index.equal(chunk, count - 1);
  return range;
}

} // namespace ortc::cpu
