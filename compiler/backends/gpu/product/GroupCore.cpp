// Products of groups of four warps (wgmma), which read both sides from shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM has no intrinsic for a product, so it is assembly whose results are tied to its operands: sums stay in their
// registers. ptxas would wait for each product if anything else wrote to them.
#include "compiler/backends/gpu/product/GroupCore.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

/// Fields of a descriptor: addresses and strides are in units of 16 bytes.
static constexpr int64_t kUnitShift = 4, kLeadingShift = 16;
/// Its upper half: eight lines of 128 bytes from one to the next, and chunks swizzled within 128 bytes.
static constexpr int64_t kUpperHalf = (8 * 128) >> kUnitShift | int64_t(1) << 30;

Value describeOperand(ThreadBuilder &b, Value place, int64_t panelBytes) {
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), place);
  Value low = arith::ShRUIOp::create(b, address, b.constant32(kUnitShift));
  low = arith::AddIOp::create(b, low, b.constant32(panelBytes >> kUnitShift << kLeadingShift));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), low);
  return arith::OrIOp::create(b, wide, arith::ConstantOp::create(b, b.getI64IntegerAttr(kUpperHalf << 32)));
}

Value advanceOperand(ThreadBuilder &b, Value descriptor, Value bytes) {
  Value units = arith::IndexCastOp::create(b, b.getI64Type(), b.div(bytes, int64_t(1) << kUnitShift));
  return arith::AddIOp::create(b, descriptor, units);
}

Value advanceOperand(ThreadBuilder &b, Value descriptor, int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  return arith::AddIOp::create(b, descriptor,
                               arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes >> kUnitShift)));
}

/// Assembly that all lanes execute together, with these sums as operands and results.
static SmallVector<Value> emitAssembly(ThreadBuilder &b, const std::string &text, ValueRange sums,
                                       ValueRange others, StringRef otherConstraints) {
  SmallVector<Type> types(sums.size(), b.getF32Type());
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  std::string constraints;
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += (i ? "," : "") + std::string("=f");
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += "," + std::to_string(i);
  constraints += otherConstraints;
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, others);
  Value all = b.runAssembly(result, text, constraints, operands);
  SmallVector<Value> values;
  for (size_t i = 0; i < sums.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, all, i));
  return values;
}

SmallVector<Value> beginProduct(ThreadBuilder &b, MatrixNumber number, const GroupOperand &rows,
                                const GroupOperand &columns, ValueRange sums) {
  std::string type = number == MatrixNumber::f16 ? "f16" : "bf16", registers;
  for (size_t i = 0; i < sums.size(); ++i)
    registers += (i ? ", $" : "$") + std::to_string(i);
  auto operand = [&](size_t i) { return "$" + std::to_string(2 * sums.size() + i); };
  auto transposed = [](const GroupOperand &side) { return side.isAlongDepth ? "0" : "1"; };
  // A lane has 4 sums of every 8 columns. Both sides count with their signs, and are added to the sums.
  std::string text = "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, 1, 0;\n\twgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(sums.size() * 2) + "k16.f32." + type + "." + type + " {" + registers +
                     "}, " + operand(0) + ", " + operand(1) + ", adds, 1, 1, " + transposed(rows) + ", " +
                     transposed(columns) + ";\n\t}";
  return emitAssembly(b, text, sums, {rows.descriptor, columns.descriptor}, ",l,l");
}

void fenceSums(ThreadBuilder &b) { b.callIntrinsic({}, "llvm.nvvm.wgmma.fence.sync.aligned", {}); }

void closeProducts(ThreadBuilder &b) { b.callIntrinsic({}, "llvm.nvvm.wgmma.commit_group.sync.aligned", {}); }

SmallVector<Value> waitForProducts(ThreadBuilder &b, int64_t pending, ValueRange sums) {
  return emitAssembly(b, "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";", sums, {}, "");
}

void fenceShared(ThreadBuilder &b) { b.callIntrinsic({}, "llvm.nvvm.fence.proxy.async.shared_cta", {}); }

} // namespace ortc::gpu
