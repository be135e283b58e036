// Instructions of NVIDIA's tensor cores, and the copies that feed them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/TensorCore.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

TensorCore::TensorCore() {
  pieces = 2;
  readsAcrossDepth = copies = loadsBeforeBarrier = true;
  sumValues = 4, run = 2, rowStep = 8, sumPadding = 8;
}

/// ldmatrix reads a fragment as four matrices of 8 x 8 elements: lane 8m + r gives the address of row r of matrix m.
/// Rows of matrices of rows go before their depth, and columns of such of columns after it; transposed the other way.
FragmentPlace TensorCore::placeOf(ThreadBuilder &b, Value lane, Side side, bool isAlongDepth) const {
  Value low = b.rem(lane, 8);
  Value third = b.rem(b.div(lane, 8), 2), fourth = b.div(lane, 16);
  bool isLineFirst = (side == Side::row) == isAlongDepth;
  return {b.add(low, b.mul(isLineFirst ? third : fourth, 8)), isLineFirst ? fourth : third};
}

/// Two neighbours of a row of each matrix (across the depth: of a column), in a register each (i32).
SmallVector<Value> TensorCore::load(ThreadBuilder &b, MatrixNumber, ValueRange pointers,
                                    bool isAlongDepth) const {
  StringRef name = isAlongDepth ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
                                : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3";
  return b.callIntrinsic(b.getI32Type(), 4, name, pointers);
}

SmallVector<Value> TensorCore::zeros(ThreadBuilder &b) const {
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  return SmallVector<Value>(sumValues, zero);
}

SmallVector<Value> TensorCore::multiply(ThreadBuilder &b, MatrixNumber number, ValueRange rows,
                                        ValueRange columns, int64_t piece, ValueRange sums) const {
  bool isHalf = number == MatrixNumber::f16;
  SmallVector<Value> operands;
  auto halves = VectorType::get({2}, b.getF16Type());
  for (ValueRange side : {rows, columns.slice(piece * 2, 2)})
    for (Value pair : side)
      operands.push_back(isHalf ? LLVM::BitcastOp::create(b, halves, pair).getResult() : pair);
  llvm::append_range(operands, sums);
  StringRef name = isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
  return b.callIntrinsic(b.getF32Type(), 4, name, operands);
}

SmallVector<Value> TensorCore::elementsOf(ThreadBuilder &, ValueRange sums) const { return sums; }

SmallVector<Value> TensorCore::sumsOf(ThreadBuilder &, ValueRange elements) const { return elements; }

/// Sums lie as rows do.
SmallVector<Value> TensorCore::rowsOf(ThreadBuilder &, Value, MatrixNumber, ValueRange words) const {
  return words;
}

Value TensorCore::roundPair(ThreadBuilder &b, Value low, Value high) const {
  auto pair = VectorType::get({2}, b.getBF16Type());
  Value rounded = b.callIntrinsic(pair, "llvm.nvvm.ff2bf16x2.rn", ValueRange{high, low});
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

RoundingCore::RoundingCore() {
  reads = 2; // ldmatrix takes 8 of the 16 steps
  readsAcrossDepth = copies = false;
}

/// To ldmatrix a number is two of 16 bits, and what a lane gets of a row of four is one number. Chunks of the two reads
/// are neighbours.
FragmentPlace RoundingCore::placeOf(ThreadBuilder &b, Value lane, Side side, bool isAlongDepth) const {
  FragmentPlace place = TensorCore::placeOf(b, lane, side, isAlongDepth);
  return {place.line, b.mul(place.chunk, 2)};
}

SmallVector<Value> RoundingCore::load(ThreadBuilder &b, MatrixNumber number, ValueRange pointers,
                                      bool isAlongDepth) const {
  SmallVector<Value> fragment;
  for (Value pointer : pointers)
    llvm::append_range(fragment, TensorCore::load(b, number, pointer, isAlongDepth));
  return fragment;
}

SmallVector<Value> RoundingCore::multiply(ThreadBuilder &b, MatrixNumber, ValueRange rows, ValueRange columns,
                                          int64_t piece, ValueRange sums) const {
  SmallVector<Value> result(sums);
  for (int64_t read = 0; read < reads; ++read) {
    SmallVector<Value> operands(rows.slice(read * 4, 4));
    llvm::append_range(operands, columns.slice(read * 4 + piece * 2, 2));
    llvm::append_range(operands, result);
    result = b.callIntrinsic(b.getF32Type(), 4, "llvm.nvvm.mma.m16n8k8.row.col.tf32", operands);
  }
  return result;
}

Value RoundingCore::roundFull(ThreadBuilder &b, Value value) const {
  return b.callIntrinsic(b.getI32Type(), "llvm.nvvm.f2tf32.rna", value);
}

void copyAsync(ThreadBuilder &b, Value shared, Value source, Value isThere) {
  auto global = LLVM::LLVMPointerType::get(b.getContext(), 1);
  Value from = LLVM::AddrSpaceCastOp::create(b, global, source);
  if (!isThere) {
    b.callIntrinsic({}, "llvm.nvvm.cp.async.cg.shared.global.16", ValueRange{shared, from});
    return;
  }
  Value bytes = b.choose(isThere, b.constant32(16), b.constant32(0));
  b.callIntrinsic({}, "llvm.nvvm.cp.async.cg.shared.global.16.s", ValueRange{shared, from, bytes});
}

void closeCopies(ThreadBuilder &b) { b.callIntrinsic({}, "llvm.nvvm.cp.async.commit.group", {}); }

void waitForCopies(ThreadBuilder &b, int64_t pending) {
  b.callIntrinsic({}, "llvm.nvvm.cp.async.wait.group", b.constant32(pending));
}

} // namespace ortc::gpu
