// Finds operations of f64 and puts calls of integer functions in their places.
// Operations on the sign alone are operations on bits. Bits of a result go to the next operation as they are, without
// a way through f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/SoftDoubles.h"

#include "compiler/backends/cpu/object/DoubleFunctions.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace ortc::cpu {

constexpr uint64_t kSign = uint64_t(1) << 63;

static bool isDouble(const Value *value) { return value->getType()->getScalarType()->isDoubleTy(); }

static bool isLong(const Value *value) { return value->getType()->getScalarType()->isIntegerTy(64); }

static std::optional<DoubleFunctions::Rounding> findRounding(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::ceil:
    return DoubleFunctions::ToPositive;
  case Intrinsic::floor:
    return DoubleFunctions::ToNegative;
  case Intrinsic::trunc:
    return DoubleFunctions::ToZero;
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::roundeven:
    return DoubleFunctions::ToEven;
  default:
    return std::nullopt;
  }
}

static bool isFused(Intrinsic::ID id) { return id == Intrinsic::fma || id == Intrinsic::fmuladd; }

static Intrinsic::ID intrinsicOf(const Instruction &instruction) {
  const auto *call = dyn_cast<IntrinsicInst>(&instruction);
  return call ? call->getIntrinsicID() : Intrinsic::not_intrinsic;
}

/// Whether LLVM would make a call of it. Operations on the sign it would not, but they need not leave the bits either.
static bool isSoft(const Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FDiv:
  case Instruction::FNeg:
  case Instruction::FCmp:
  case Instruction::FPTrunc:
    return isDouble(instruction.getOperand(0));
  case Instruction::FPExt:
    return isDouble(&instruction);
  case Instruction::FPToUI:
  case Instruction::FPToSI:
    return isDouble(instruction.getOperand(0)) || isLong(&instruction);
  case Instruction::UIToFP:
  case Instruction::SIToFP:
    return isDouble(&instruction) || isLong(instruction.getOperand(0));
  default:
    break;
  }
  Intrinsic::ID id = intrinsicOf(instruction);
  return isDouble(&instruction) && (findRounding(id) || isFused(id) || id == Intrinsic::fabs ||
                                    id == Intrinsic::copysign || id == Intrinsic::sqrt);
}

namespace {

/// Replacements of one scalar operation, made before it.
class Expander {
public:
  Expander(Instruction *at, DoubleFunctions &functions) : b(at), functions(functions), at(at) {}

  Value *expand(ArrayRef<Value *> x, Type *type) {
    switch (at->getOpcode()) {
    case Instruction::FAdd:
      return call(functions.add(), {bits(x[0]), bits(x[1])});
    case Instruction::FSub:
      return call(functions.add(), {bits(x[0]), negate(x[1])});
    case Instruction::FMul:
      return call(functions.multiply(), {bits(x[0]), bits(x[1])});
    case Instruction::FDiv:
      return call(functions.divide(), {bits(x[0]), bits(x[1])});
    case Instruction::FNeg:
      return toDouble(negate(x[0]));
    case Instruction::FCmp:
      return compare(x[0], x[1]);
    case Instruction::FPTrunc:
      return toFloat(functions.truncate(type), {bits(x[0])}, type);
    case Instruction::FPExt:
      return extend(x[0]);
    case Instruction::UIToFP:
      return toFloat(
          functions.round(type),
          {b.CreateZExt(x[0], b.getInt64Ty()), b.getInt32(DoubleFunctions::kBias + 63), b.getInt32(0)}, type);
    case Instruction::SIToFP:
      return toFloat(functions.fromSigned(type), {b.CreateSExt(x[0], b.getInt64Ty())}, type);
    case Instruction::FPToUI:
    case Instruction::FPToSI:
      return b.CreateTrunc(b.CreateCall(functions.toInteger(), {bits(isDouble(x[0]) ? x[0] : extend(x[0]))}),
                           type);
    default:
      return expandIntrinsic(x);
    }
  }

private:
  Value *expandIntrinsic(ArrayRef<Value *> x) {
    Intrinsic::ID id = intrinsicOf(*at);
    if (auto rounding = findRounding(id))
      return call(functions.toIntegral(), {bits(x[0]), b.getInt32(*rounding)});
    switch (id) {
    case Intrinsic::fabs:
      return toDouble(magnitude(x[0]));
    case Intrinsic::copysign:
      return toDouble(b.CreateOr(magnitude(x[0]), b.CreateAnd(bits(x[1]), kSign)));
    case Intrinsic::sqrt:
      return call(functions.squareRoot(), {bits(x[0])});
    default: // multiply-adds
      return call(functions.multiplyAdd(), {bits(x[0]), bits(x[1]), bits(x[2])});
    }
  }

  Value *bits(Value *x) {
    if (auto *cast = dyn_cast<BitCastInst>(x); cast && cast->getSrcTy()->isIntegerTy(64))
      return cast->getOperand(0);
    return b.CreateBitCast(x, b.getInt64Ty());
  }
  Value *toDouble(Value *x) { return b.CreateBitCast(x, b.getDoubleTy()); }
  Value *call(Function *function, ArrayRef<Value *> x) { return toDouble(b.CreateCall(function, x)); }
  Value *negate(Value *x) { return b.CreateXor(bits(x), kSign); }
  Value *magnitude(Value *x) { return b.CreateAnd(bits(x), ~kSign); }

  Value *compare(Value *x, Value *y) {
    Value *relation = b.CreateCall(functions.compare(), {bits(x), bits(y)});
    return b.CreateIsNotNull(b.CreateAnd(relation, b.getInt32(cast<FCmpInst>(at)->getPredicate())));
  }
  Value *toFloat(Function *function, ArrayRef<Value *> x, Type *type) {
    Value *word = b.CreateCall(function, x);
    return b.CreateBitCast(b.CreateTrunc(word, b.getIntNTy(type->getScalarSizeInBits())), type);
  }
  Value *extend(Value *x) {
    Value *single = x->getType()->isFloatTy() ? x : b.CreateFPExt(x, b.getFloatTy());
    return call(functions.extend(), {b.CreateBitCast(single, b.getInt32Ty())});
  }

  IRBuilder<> b;
  DoubleFunctions &functions;
  Instruction *at;
};

} // namespace

static void expand(Instruction *instruction, DoubleFunctions &functions) {
  Expander expander(instruction, functions);
  IRBuilder<> b(instruction);
  auto *call = dyn_cast<CallInst>(instruction);
  SmallVector<Value *> operands(call ? call->args() : instruction->operands());
  Type *type = instruction->getType();
  Value *result;
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    result = PoisonValue::get(type);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      SmallVector<Value *> scalars;
      for (Value *operand : operands) {
        Value *known = findScalarElement(operand, lane);
        scalars.push_back(known ? known : b.CreateExtractElement(operand, lane));
      }
      result = b.CreateInsertElement(result, expander.expand(scalars, vector->getElementType()), lane);
    }
  } else {
    result = expander.expand(operands, type);
  }
  instruction->replaceAllUsesWith(result);
  instruction->eraseFromParent();
}

/// What is left of ways through f64.
static void eraseUnused(Module &module) {
  SmallVector<WeakTrackingVH> casts;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (isa<BitCastInst, InsertElementInst>(instruction) && instruction.use_empty())
          casts.push_back(&instruction);
  RecursivelyDeleteTriviallyDeadInstructions(casts);
}

void expandDoubles(Module &module) {
  SmallVector<Instruction *> found;
  bool fused = false;
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    // Operands first, as far as there are no loops.
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
      for (Instruction &instruction : *block)
        if (isSoft(instruction)) {
          found.push_back(&instruction);
          fused |= isFused(intrinsicOf(instruction));
        }
  }
  if (found.empty())
    return;
  DoubleFunctions functions(module, fused);
  for (Instruction *instruction : found)
    expand(instruction, functions);
  eraseUnused(module);
}

} // namespace ortc::cpu
