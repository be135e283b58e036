// Index checks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written in the llvm dialect: it has an ABI of its own (it returns a status) and no time is spent in it.
#include "compiler/backends/cpu/KernelGenerator.h"

#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "ortc/call.h"

using namespace mlir;

namespace ortc::cpu {

KernelInfo generateCheck(ModuleOp module, func::FuncOp function, uint32_t nameIndex) {
  auto check = *function.getOps<nn::CheckIndexOp>().begin();
  auto type = cast<RankedTensorType>(check.getType());
  MLIRContext *context = module.getContext();
  ImplicitLocOpBuilder b(UnknownLoc::get(context), context);
  b.setInsertionPointToEnd(module.getBody());
  Type element = type.getElementType(), i32 = b.getI32Type(), i64 = b.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(context);
  KernelInfo info;
  info.name = function.getSymName().str();
  auto entry = LLVM::LLVMFuncOp::create(b, kernelEntryName(info.name),
                                        LLVM::LLVMFunctionType::get(i32, {pointer, pointer}));
  entry.setVisibility_(LLVM::Visibility::Hidden);
  Block *start = entry.addEntryBlock(b);
  auto newBlock = [&](TypeRange arguments = {}) {
    OpBuilder::InsertionGuard guard(b);
    return b.createBlock(&entry.getBody(), entry.getBody().end(), arguments,
                         SmallVector<Location>(arguments.size(), b.getLoc()));
  };
  auto constant = [&](Type type, int64_t value) -> Value { return LLVM::ConstantOp::create(b, type, value); };
  auto at = [&](Value base, Type type, LLVM::GEPArg offset) -> Value {
    return LLVM::GEPOp::create(b, pointer, type, base, offset);
  };
  Block *loop = newBlock({i64}), *inRange = newBlock(), *bad = newBlock(), *good = newBlock();

  b.setInsertionPointToStart(start);
  Value args = start->getArgument(0), detail = start->getArgument(1);
  Value input = LLVM::LoadOp::create(b, pointer, args),
        output = LLVM::LoadOp::create(b, pointer, at(args, pointer, 1));
  LLVM::BrOp::create(b, type.getNumElements() ? ValueRange{constant(i64, 0)} : ValueRange{},
                     type.getNumElements() ? loop : good);

  b.setInsertionPointToStart(loop);
  Value i = loop->getArgument(0);
  Value index = LLVM::LoadOp::create(b, element, at(input, element, i));
  Value wide = element == i64 ? index : LLVM::SExtOp::create(b, i64, index).getResult();
  auto compare = [&](LLVM::ICmpPredicate predicate, int64_t limit) -> Value {
    return LLVM::ICmpOp::create(b, predicate, wide, constant(i64, limit));
  };
  Value valid = LLVM::AndOp::create(b, compare(LLVM::ICmpPredicate::sge, check.getLower()),
                                    compare(LLVM::ICmpPredicate::slt, check.getUpper()));
  if (auto ignore = check.getIgnore())
    valid = LLVM::OrOp::create(b, valid, compare(LLVM::ICmpPredicate::eq, *ignore));
  LLVM::CondBrOp::create(b, valid, inRange, bad);

  b.setInsertionPointToStart(inRange);
  LLVM::StoreOp::create(b, index, at(output, element, i));
  Value next = LLVM::AddOp::create(b, i, constant(i64, 1));
  Value more = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::slt, next, constant(i64, type.getNumElements()));
  LLVM::CondBrOp::create(b, more, loop, ValueRange{next}, good, ValueRange{});

  b.setInsertionPointToStart(bad);
  auto field = [&](size_t offset) { return at(detail, b.getI8Type(), static_cast<int32_t>(offset)); };
  LLVM::StoreOp::create(b, constant(i32, nameIndex), field(offsetof(ortc_detail, name)));
  LLVM::StoreOp::create(b, constant(i32, static_cast<int64_t>(check.getLower()) < 0),
                        field(offsetof(ortc_detail, from_end)));
  LLVM::StoreOp::create(b, wide, field(offsetof(ortc_detail, index)));
  LLVM::StoreOp::create(b, constant(i64, check.getUpper()), field(offsetof(ortc_detail, limit)));
  LLVM::ReturnOp::create(b, constant(i32, ORTC_STEP_RANGE));

  b.setInsertionPointToStart(good);
  LLVM::ReturnOp::create(b, constant(i32, ORTC_STEP_OK));
  return info;
}

} // namespace ortc::cpu
