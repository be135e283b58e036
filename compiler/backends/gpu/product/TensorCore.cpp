// Instructions of NVIDIA's tensor cores, and the copies that feed them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/TensorCore.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

SmallVector<Value> loadMatrices(ThreadBuilder &b, Value pointer, bool transposed) {
  StringRef name = transposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
                              : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3";
  return b.callIntrinsic(b.getI32Type(), 4, name, pointer);
}

SmallVector<Value> multiplyMatrices(ThreadBuilder &b, bool isHalf, ValueRange rows, ValueRange columns,
                                    ValueRange sums) {
  SmallVector<Value> operands;
  auto halves = VectorType::get({2}, b.getF16Type());
  for (ValueRange side : {rows, columns})
    for (Value pair : side)
      operands.push_back(isHalf ? LLVM::BitcastOp::create(b, halves, pair).getResult() : pair);
  llvm::append_range(operands, sums);
  StringRef name = isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
  return b.callIntrinsic(b.getF32Type(), 4, name, operands);
}

Value roundPair(ThreadBuilder &b, Value low, Value high) {
  auto pair = VectorType::get({2}, b.getBF16Type());
  Value rounded = b.callIntrinsic(pair, "llvm.nvvm.ff2bf16x2.rn", ValueRange{high, low});
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

std::pair<Value, Value> extendPair(ThreadBuilder &b, Value pair) {
  Value low = arith::ShLIOp::create(b, pair, b.constant32(16));
  Value high = arith::AndIOp::create(b, pair, b.constant32(-65536));
  return {arith::BitcastOp::create(b, b.getF32Type(), low),
          arith::BitcastOp::create(b, b.getF32Type(), high)};
}

void copyAsync(ThreadBuilder &b, Value shared, Value source, Value isThere) {
  auto global = LLVM::LLVMPointerType::get(b.getContext(), 1);
  Value from = LLVM::AddrSpaceCastOp::create(b, global, source);
  if (!isThere) {
    b.callIntrinsic({}, "llvm.nvvm.cp.async.cg.shared.global.16", ValueRange{shared, from});
    return;
  }
  Value bytes = arith::SelectOp::create(b, isThere, b.constant32(16), b.constant32(0));
  b.callIntrinsic({}, "llvm.nvvm.cp.async.cg.shared.global.16.s", ValueRange{shared, from, bytes});
}

void closeCopies(ThreadBuilder &b) { b.callIntrinsic({}, "llvm.nvvm.cp.async.commit.group", {}); }

void waitForCopies(ThreadBuilder &b, int64_t pending) {
  b.callIntrinsic({}, "llvm.nvvm.cp.async.wait.group", b.constant32(pending));
}

} // namespace ortc::gpu
