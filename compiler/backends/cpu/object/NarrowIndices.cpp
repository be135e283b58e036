// Index arithmetic in the width of pointers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels count with 64 bits, the only width that upstream's lowering of vectors knows. LLVM's scalar evolution has
// ranges of what follows from constants. A sum, difference or product modulo 2^32 is the narrow result where that lies
// in its range, whatever the operands are; what is read of it elsewhere is extended again.
#include "compiler/backends/cpu/object/NarrowIndices.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

namespace ortc::cpu {
namespace {

class Narrowing {
public:
  Narrowing(Function &function, ScalarEvolution &evolution)
      : function(function), evolution(evolution), i32(Type::getInt32Ty(function.getContext())) {}

  void run() {
    ReversePostOrderTraversal<Function *> order(&function);
    SmallVector<ICmpInst *> comparisons;
    for (BasicBlock *block : order)
      for (Instruction &op : *block) {
        if (auto *comparison = dyn_cast<ICmpInst>(&op); comparison && areNarrow(comparison))
          comparisons.push_back(comparison);
        else if (canBeNarrow(op))
          narrowed[&op] = nullptr;
      }
    if (narrowed.empty() && comparisons.empty())
      return;
    // Facts about operands first: nothing has changed yet.
    for (auto &entry : narrowed)
      flags.push_back(
          llvm::all_of(entry.first->operands(), [&](Value *operand) { return isNarrow(operand); }));
    for (auto &[op, narrow] : narrowed)
      if (auto *phi = dyn_cast<PHINode>(op))
        narrow = PHINode::Create(i32, phi->getNumIncomingValues(), phi->getName(), phi->getIterator());
    for (auto [entry, isExact] : zip_equal(narrowed, flags))
      if (!entry.second)
        entry.second = create(*entry.first, isExact);
    for (auto &[op, narrow] : narrowed)
      if (auto *phi = dyn_cast<PHINode>(op)) {
        auto *result = cast<PHINode>(narrow);
        for (auto [value, block] : zip_equal(phi->incoming_values(), phi->blocks())) {
          int known = result->getBasicBlockIndex(block); // one value from a block, however often it comes
          result->addIncoming(
              known < 0 ? narrowOf(value, block->getTerminator()) : result->getIncomingValue(known), block);
        }
      }
    for (ICmpInst *comparison : comparisons)
      for (Use &operand : comparison->operands())
        operand.set(narrowOf(operand, comparison));
    removeWide();
  }

private:
  bool isNarrow(Value *value) {
    return value->getType()->isIntegerTy(64) &&
           evolution.getSignedRange(evolution.getSCEV(value)).getMinSignedBits() <= 32;
  }
  bool areNarrow(ICmpInst *comparison) {
    return isNarrow(comparison->getOperand(0)) && isNarrow(comparison->getOperand(1));
  }
  bool canBeNarrow(Instruction &op) {
    if (!op.getType()->isIntegerTy(64))
      return false;
    switch (op.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::PHI:
    case Instruction::Select:
      return isNarrow(&op);
    case Instruction::SDiv:
    case Instruction::SRem:
      return isNarrow(&op) && isNarrow(op.getOperand(0)) && isNarrow(op.getOperand(1));
    default:
      return false;
    }
  }

  /// `value` in 32 bits, at `at` if it has to be cut off.
  Value *narrowOf(Value *value, Instruction *at) {
    if (auto *op = dyn_cast<Instruction>(value))
      if (auto known = narrowed.find(op); known != narrowed.end() && known->second)
        return known->second;
    if (auto *cast = dyn_cast<CastInst>(value); cast && cast->getSrcTy() == i32)
      return cast->getOperand(0);
    return IRBuilder<>(at).CreateTrunc(value, i32);
  }

  Value *create(Instruction &op, bool isExact) {
    IRBuilder<> builder(&op);
    if (auto *select = dyn_cast<SelectInst>(&op))
      return builder.CreateSelect(select->getCondition(), narrowOf(select->getTrueValue(), &op),
                                  narrowOf(select->getFalseValue(), &op));
    Value *a = narrowOf(op.getOperand(0), &op), *b = narrowOf(op.getOperand(1), &op);
    Value *result = builder.CreateBinOp(cast<BinaryOperator>(op).getOpcode(), a, b);
    auto *made = dyn_cast<Instruction>(result);
    if (made && isExact && isa<OverflowingBinaryOperator>(made))
      made->setHasNoSignedWrap();
    return result;
  }

  /// Readers that stay wide take the extended numbers.
  void removeWide() {
    for (auto &[op, narrow] : narrowed) {
      IRBuilder<> builder(op->getParent(),
                          isa<PHINode>(op) ? op->getParent()->getFirstInsertionPt() : op->getIterator());
      op->replaceAllUsesWith(builder.CreateSExt(narrow, op->getType()));
    }
    for (auto &entry : narrowed)
      entry.first->eraseFromParent();
  }

  Function &function;
  ScalarEvolution &evolution;
  Type *i32;
  MapVector<Instruction *, Value *>
      narrowed;            ///< wide numbers, in an order that has producers first, to what replaces them
  SmallVector<bool> flags; ///< of these: whether all operands are in that range, too
};

} // namespace

void narrowIndices(Module &module) {
  PassBuilder builder;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  for (Function &function : module)
    if (!function.isDeclaration())
      Narrowing(function, functions.getResult<ScalarEvolutionAnalysis>(function)).run();
}

} // namespace ortc::cpu
