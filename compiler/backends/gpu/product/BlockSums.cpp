// Products of a block of the depth, of 16 rows: where sums of f32 numbers leave the matrix core.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/BlockSums.h"

using namespace mlir;

namespace ortc::gpu {

SmallVector<SmallVector<Value>> loadBlock(SharedTile &side, Value place, int64_t number, int64_t firstStep,
                                          int64_t parts) {
  SmallVector<SmallVector<Value>> fragments;
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t step = 0; step < kBlockSteps; ++step)
      fragments.push_back(side.loadFragment(place, number, firstStep + step, part));
  return fragments;
}

void addBlock(ThreadBuilder &b, const MatrixPlan &plan, ArrayRef<SmallVector<Value>> rows,
              SharedTile &columns, Value place, int64_t firstNumber, int64_t firstStep,
              MutableArrayRef<Value> sums) {
  const MatrixCore &core = *plan.core;
  const bool isExact = plan.format.isExact();
  for (int64_t number = firstNumber; !sums.empty(); ++number) {
    core.separate(b);
    auto ofColumns = loadBlock(columns, place, number, firstStep, plan.format.columnParts);
    for (int64_t piece = 0; piece < core.pieces; ++piece) {
      MutableArrayRef<Value> own = sums.take_front(core.sumValues);
      sums = sums.drop_front(core.sumValues);
      SmallVector<Value> block = isExact ? SmallVector<Value>(own) : core.zeros(b);
      for (auto [rowPart, columnPart] : plan.format.pairs())
        for (int64_t step = 0; step < kBlockSteps; ++step)
          block = core.multiply(b, plan.format.number, rows[rowPart * kBlockSteps + step],
                                ofColumns[columnPart * kBlockSteps + step], piece, block);
      for (auto [sum, more] : llvm::zip_equal(own, block))
        sum = isExact ? more : arith::AddFOp::create(b, sum, more).getResult();
    }
  }
}

} // namespace ortc::gpu
