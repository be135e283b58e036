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

AmdCore::AmdCore(int64_t laneCount) {
  lanes = laneCount, run = 4, columnStep = lanes / 4, sumPadding = 4;
  rowLanes = lanes / 16, rowLaneStep = 16;
}

SmallVector<Value> AmdCore::load(ThreadBuilder &b, MatrixNumber number, ValueRange pointers,
                                 bool isAlongDepth) const {
  const int64_t count = isAlongDepth ? chunkBytesOf(number) / bytesOf(number) : 1;
  if (pointers.size() == 1)
    return {b.loadRun(pointers.front(), typeOf(b, number), count)};
  SmallVector<Value> elements;
  for (Value pointer : pointers)
    llvm::append_range(elements, b.elementsOf(b.loadRun(pointer, typeOf(b, number), count)));
  return {b.runOf(elements)};
}

SmallVector<Value> AmdCore::zeros(ThreadBuilder &b) const {
  auto type = VectorType::get({sumsOfLane()}, b.getF32Type());
  return {arith::ConstantOp::create(b, b.getZeroAttr(type))};
}

SmallVector<Value> AmdCore::elementsOf(ThreadBuilder &b, ValueRange sums) const {
  return b.elementsOf(sums.front());
}

SmallVector<Value> AmdCore::sumsOf(ThreadBuilder &b, ValueRange elements) const {
  return {b.runOf(elements)};
}

/// A lane's columns are its steps.
SmallVector<Value> AmdCore::rowsOf(ThreadBuilder &b, Value, MatrixNumber number, ValueRange words) const {
  Value run = b.runOf(words);
  if (number == MatrixNumber::f32)
    return {run};
  auto type = VectorType::get({static_cast<int64_t>(words.size()) * 2}, typeOf(b, number));
  return {LLVM::BitcastOp::create(b, type, run)};
}

Value AmdCore::roundPair(ThreadBuilder &b, Value low, Value high) const {
  Value bits = truncateFromF32(b, b.getLoc(), b.runOf({low, high}), b.getBF16Type());
  return LLVM::BitcastOp::create(b, b.getI32Type(), bits);
}

MfmaCore::MfmaCore(bool hasHalf) : AmdCore(64) { this->hasHalf = hasHalf, hasFull = true; }

FragmentPlace MfmaCore::placeOf(ThreadBuilder &b, Value lane, Side, bool) const {
  return {b.rem(lane, 16), b.div(lane, 16)};
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

WmmaCore::WmmaCore() : AmdCore(32) { reads = 2, hasFewRegisters = true; }

/// Column c of the product is row (c / 8) * 8 + (c % 4) * 2 + c / 4 % 2 of the first operand. Eight neighbouring lanes
/// have eight neighbouring columns, so that they read from all banks of shared memory.
FragmentPlace WmmaCore::placeOf(ThreadBuilder &b, Value lane, Side side, bool) const {
  Value line = b.rem(lane, 16);
  if (side == Side::column)
    line = b.add(b.add(b.mul(b.div(line, 8), 8), b.mul(b.rem(line, 2), 4)), b.rem(b.div(line, 2), 4));
  return {line, b.index(0)};
}

SmallVector<Value> WmmaCore::multiply(ThreadBuilder &b, MatrixNumber number, ValueRange rows,
                                      ValueRange columns, int64_t, ValueRange sums) const {
  StringRef name = number == MatrixNumber::f16 ? "llvm.amdgcn.wmma.f32.16x16x16.f16"
                                               : "llvm.amdgcn.wmma.f32.16x16x16.bf16";
  return {
      b.callIntrinsic(sums.front().getType(), name, ValueRange{columns.front(), rows.front(), sums.front()})};
}

/// In each run of 8 steps, lanes below 16 have the first four, and the lanes 16 above them the others.
SmallVector<Value> WmmaCore::rowsOf(ThreadBuilder &b, Value lane, MatrixNumber number,
                                    ValueRange words) const {
  Value isLower = b.less(lane, 16);
  SmallVector<Value> all, upper;
  for (auto [place, word] : llvm::enumerate(words)) {
    Value other = b.shuffleXor(word, 16);
    all.push_back(b.choose(isLower, word, other));
    upper.push_back(b.choose(isLower, other, word));
    if (place % 2 == 1) {
      llvm::append_range(all, upper);
      upper.clear();
    }
  }
  return AmdCore::rowsOf(b, lane, number, all);
}

} // namespace ortc::gpu
