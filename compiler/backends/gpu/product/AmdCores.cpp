// Instructions of AMD's matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/AmdCores.h"

#include "compiler/backends/emit/StorageConversion.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

/// As intrinsics take them.
static Type typeOf(ThreadBuilder &b, MatrixNumber number) {
  switch (number) {
  case MatrixNumber::bf16:
    return b.getI16Type();
  case MatrixNumber::f16:
    return b.getF16Type();
  case MatrixNumber::f32:
    return b.getF32Type();
  }
  llvm_unreachable("all numbers are listed");
}

SmallVector<Value> AmdCore::zeros(ThreadBuilder &b) const {
  auto type = VectorType::get({sumsOfLane()}, b.getF32Type());
  return {arith::ConstantOp::create(b, b.getZeroAttr(type))};
}

SmallVector<Value> AmdCore::elementsOf(ThreadBuilder &b, ValueRange sums) const {
  return b.elementsOf(sums.front());
}

Value AmdCore::roundPair(ThreadBuilder &b, Value low, Value high) const {
  Value bits = truncateFromF32(b, b.getLoc(), b.runOf({low, high}), b.getBF16Type());
  return LLVM::BitcastOp::create(b, b.getI32Type(), bits);
}

MfmaCore::MfmaCore(bool hasHalf) {
  lanes = 64, run = 4, sumPadding = 4;
  this->hasHalf = hasHalf, hasFull = true;
}

FragmentPlace MfmaCore::placeOf(ThreadBuilder &b, Value lane, Side, bool) const {
  return {b.rem(lane, 16), b.div(lane, 16)};
}

SmallVector<Value> MfmaCore::load(ThreadBuilder &b, MatrixNumber number, ValueRange pointers, bool) const {
  return {b.loadRun(pointers.front(), typeOf(b, number), 4)};
}

SmallVector<Value> MfmaCore::multiply(ThreadBuilder &b, MatrixNumber number, ValueRange rows,
                                      ValueRange columns, int64_t, ValueRange sums) const {
  auto multiplyWith = [&](StringRef name, Value first, Value second, Value sum) {
    Value none = b.constant32(0); // of three fields that let lanes take others' numbers
    return b.callIntrinsic(sum.getType(), name, ValueRange{first, second, sum, none, none, none});
  };
  Value sum = sums.front();
  if (number == MatrixNumber::bf16)
    return {multiplyWith("llvm.amdgcn.mfma.f32.16x16x16bf16.1k", columns.front(), rows.front(), sum)};
  if (number == MatrixNumber::f16)
    return {multiplyWith("llvm.amdgcn.mfma.f32.16x16x16f16", columns.front(), rows.front(), sum)};
  for (auto [column, row] : llvm::zip_equal(b.elementsOf(columns.front()), b.elementsOf(rows.front())))
    sum = multiplyWith("llvm.amdgcn.mfma.f32.16x16x4f32", column, row, sum);
  return {sum};
}

WmmaCore::WmmaCore() { lanes = 32, reads = 2, run = 1, rowStep = 2, sumPadding = 16; }

FragmentPlace WmmaCore::placeOf(ThreadBuilder &b, Value lane, Side, bool) const {
  return {b.rem(lane, 16), b.index(0)};
}

SmallVector<Value> WmmaCore::load(ThreadBuilder &b, MatrixNumber number, ValueRange pointers, bool) const {
  SmallVector<Value> elements;
  for (Value pointer : pointers)
    llvm::append_range(elements, b.elementsOf(b.loadRun(pointer, typeOf(b, number), 8)));
  return {b.runOf(elements)};
}

SmallVector<Value> WmmaCore::multiply(ThreadBuilder &b, MatrixNumber number, ValueRange rows,
                                      ValueRange columns, int64_t, ValueRange sums) const {
  StringRef name = number == MatrixNumber::f16 ? "llvm.amdgcn.wmma.f32.16x16x16.f16"
                                               : "llvm.amdgcn.wmma.f32.16x16x16.bf16";
  return {
      b.callIntrinsic(sums.front().getType(), name, ValueRange{rows.front(), columns.front(), sums.front()})};
}

void WmmaCore::separate(ThreadBuilder &b) const {
  b.callIntrinsic({}, "llvm.amdgcn.sched.barrier", b.constant32(0));
}

} // namespace ortc::gpu
