// Writes small functions of integers. They are for size: LLVM then makes branches of what it would select, but also
// calls of a library of shifts of 64 bits by a variable, which loops take the place of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/IntegerCode.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ortc::cpu {

IntegerCode::IntegerCode(Module &module, StringRef group)
    : b(module.getContext()), i32(b.getInt32Ty()), i64(b.getInt64Ty()), i128(b.getInt128Ty()),
      module(module) {
  StringRef first = find_if(module, [](const Function &f) { return !f.isDeclaration(); })->getName();
  prefix = (first + "." + group + ".").str();
}

Function *IntegerCode::make(const Twine &name, Type *result, ArrayRef<Type *> parameters,
                            function_ref<Value *()> body) {
  std::string symbol = (prefix + name).str();
  if (Function *existing = module.getFunction(symbol))
    return existing;
  auto *function = Function::Create(FunctionType::get(result, parameters, false),
                                    GlobalValue::InternalLinkage, symbol, module);
  for (auto attribute :
       {Attribute::NoInline, Attribute::NoUnwind, Attribute::OptimizeForSize, Attribute::MinSize})
    function->addFnAttr(attribute);
  // Functions that LLVM makes of pieces of others are called with words on the stack that their frames do not have.
  function->addFnAttr("nooutline");
  IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", function));
  b.CreateRet(body());
  return function;
}

/// Values of a loop that begins here, at first `start`, and the block they come from.
SmallVector<PHINode *> IntegerCode::beginLoop(const Values &start, BasicBlock *loop) {
  BasicBlock *before = b.GetInsertBlock();
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  SmallVector<PHINode *> phis;
  for (Value *value : start) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
  }
  return phis;
}

IntegerCode::Values IntegerCode::repeat(const Values &start, function_ref<Value *(Values &)> step) {
  BasicBlock *loop = createBlock(), *after = createBlock();
  SmallVector<PHINode *> phis = beginLoop(start, loop);
  Values values(phis.begin(), phis.end());
  b.CreateCondBr(step(values), loop, after);
  for (auto [phi, value] : zip(phis, values))
    phi->addIncoming(value, loop);
  b.SetInsertPoint(after);
  return values;
}

IntegerCode::Values IntegerCode::repeatWhile(const Values &start,
                                             function_ref<Value *(const Values &)> condition,
                                             function_ref<void(Values &)> step) {
  BasicBlock *head = createBlock(), *loop = createBlock(), *after = createBlock();
  SmallVector<PHINode *> phis = beginLoop(start, head);
  Values values(phis.begin(), phis.end()), next = values;
  b.CreateCondBr(condition(values), loop, after);
  b.SetInsertPoint(loop);
  step(next);
  b.CreateBr(head);
  for (auto [phi, value] : zip(phis, next))
    phi->addIncoming(value, loop);
  b.SetInsertPoint(after);
  return values;
}

void IntegerCode::returnIf(Value *condition, function_ref<Value *()> value) {
  BasicBlock *leaves = createBlock(), *stays = createBlock();
  b.CreateCondBr(condition, leaves, stays);
  b.SetInsertPoint(leaves);
  b.CreateRet(value());
  b.SetInsertPoint(stays);
}

Value *IntegerCode::negateIf(Value *condition, Value *x, uint64_t from) {
  BasicBlock *before = b.GetInsertBlock(), *negates = createBlock(), *after = createBlock();
  b.CreateCondBr(condition, negates, after);
  b.SetInsertPoint(negates);
  Value *negated = b.CreateSub(ConstantInt::get(x->getType(), from), x);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  PHINode *phi = b.CreatePHI(x->getType(), 2);
  phi->addIncoming(x, before);
  phi->addIncoming(negated, negates);
  return phi;
}

} // namespace ortc::cpu
