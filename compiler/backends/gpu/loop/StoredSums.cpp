// Sums that threads hand to each other through memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/StoredSums.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace ortc::gpu {

Type storedSumType(ThreadBuilder &b, Type sum) {
  return sum.getIntOrFloatBitWidth() < 8 ? Type(b.getI8Type()) : sum;
}

void storeSum(ThreadBuilder &b, Value sum, Value array, Value at) {
  Type stored = cast<MemRefType>(array.getType()).getElementType();
  Value whole = stored == sum.getType() ? sum : arith::ExtUIOp::create(b, stored, sum).getResult();
  memref::StoreOp::create(b, whole, array, ValueRange{at});
}

Value loadSum(ThreadBuilder &b, Type type, Value array, Value at) {
  Value whole = b.loadScalar(array, at);
  return whole.getType() == type ? whole : arith::TruncIOp::create(b, type, whole).getResult();
}

} // namespace ortc::gpu
