// A builder of small integer functions within a module.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include <string>

namespace ortc::cpu {

/// Short names for code of integers, at the end of one function of the module.
class IntegerCode {
public:
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value *, 4>;

protected:
  /// Functions are named FIRST.group.NAME, after the first function that the module has.
  IntegerCode(llvm::Module &module, llvm::StringRef group);

  /// The function of that name; `body` makes what a new one returns.
  llvm::Function *make(const llvm::Twine &name, llvm::Type *result, llvm::ArrayRef<llvm::Type *> parameters,
                       llvm::function_ref<Value *()> body);
  /// Steps from `start` on, one at least, while what `step` returns holds; the values after the last.
  Values repeat(const Values &start, llvm::function_ref<Value *(Values &)> step);
  /// Steps from `start` on while the condition holds.
  Values repeatWhile(const Values &start, llvm::function_ref<Value *(const Values &)> condition,
                     llvm::function_ref<void(Values &)> step);
  void returnIf(Value *condition, llvm::function_ref<Value *()> value);
  void returnIf(Value *condition, Value *value) {
    returnIf(condition, [=] { return value; });
  }
  /// from - x where the condition holds, else x.
  Value *negateIf(Value *condition, Value *x, uint64_t from = 0);

  Value *argument(unsigned i) { return b.GetInsertBlock()->getParent()->getArg(i); }
  Value *i32Of(int64_t value) { return llvm::ConstantInt::getSigned(i32, value); }
  Value *i64Of(uint64_t value) { return b.getInt64(value); }
  Value *upper(Value *x) { return b.CreateTrunc(b.CreateLShr(x, 32), i32); }
  Value *lower(Value *x) { return b.CreateTrunc(x, i32); }
  Value *isNegative(Value *x) { return b.CreateICmpSLT(x, llvm::Constant::getNullValue(x->getType())); }
  Value *isZero(Value *x) { return b.CreateIsNull(x); }
  /// `x`, its lowest bit set where `rest` is not zero.
  Value *withRest(Value *x, Value *rest) {
    return b.CreateOr(x, b.CreateZExt(b.CreateIsNotNull(rest), x->getType()));
  }
  /// One bit to the right, keeping whether ones were lost.
  Value *shiftBit(Value *x, bool isSigned = false) {
    Value *shifted = isSigned ? b.CreateAShr(x, 1) : b.CreateLShr(x, 1);
    return b.CreateOr(shifted, b.CreateAnd(x, llvm::ConstantInt::get(x->getType(), 1)));
  }
  /// The top bit of 32 alone.
  Value *signBit(Value *word) { return b.CreateAnd(word, i32Of(INT32_MIN)); }
  /// 2^63 where the top bit of `word` is set.
  Value *signOf(Value *word) { return b.CreateShl(b.CreateZExt(signBit(word), i64), 32); }
  Value *larger(Value *x, Value *y) { return b.CreateSelect(b.CreateICmpSGT(x, y), x, y); }
  Value *smaller(Value *x, Value *y) { return b.CreateSelect(b.CreateICmpSLT(x, y), x, y); }

  llvm::IRBuilder<> b;
  llvm::Type *i32, *i64, *i128;

private:
  llvm::BasicBlock *createBlock() {
    return llvm::BasicBlock::Create(b.getContext(), "", b.GetInsertBlock()->getParent());
  }
  llvm::SmallVector<llvm::PHINode *> beginLoop(const Values &start, llvm::BasicBlock *loop);

  llvm::Module &module;
  std::string prefix;
};

} // namespace ortc::cpu
