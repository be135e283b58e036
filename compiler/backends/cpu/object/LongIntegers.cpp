// Divisions of i64 as a function that subtracts and shifts, conversions of i64 by halves.
// An i64 is hi 2^32 + lo. As f64 both products are exact, so the sum is rounded once. On the way to f32 the low bits of
// a number that f64 does not hold are replaced by one that says whether there were any: then the second rounding, to
// f32, sees what the first would have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/LongIntegers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/IntegerDivision.h"

using namespace llvm;

namespace ortc::cpu {

/// `i64 FIRST.divide(i64 a, i64 b)`, unsigned, named after the first function of the module; by the processor's
/// division where both have 32 bits.
static Function *getDivision(Module &module) {
  std::string name = (module.begin()->getName() + ".divide").str();
  if (Function *existing = module.getFunction(name))
    return existing;
  LLVMContext &context = module.getContext();
  Type *i64 = Type::getInt64Ty(context), *i32 = Type::getInt32Ty(context);
  auto *function =
      Function::Create(FunctionType::get(i64, {i64, i64}, false), GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(Attribute::NoInline);
  Value *a = function->getArg(0), *b = function->getArg(1);
  BasicBlock *entry = BasicBlock::Create(context, "", function),
             *narrow = BasicBlock::Create(context, "", function),
             *wide = BasicBlock::Create(context, "", function);
  IRBuilder<> builder(entry);
  Value *high = builder.CreateLShr(builder.CreateOr(a, b), 32);
  builder.CreateCondBr(builder.CreateICmpEQ(high, builder.getInt64(0)), narrow, wide);
  builder.SetInsertPoint(narrow);
  Value *quotient = builder.CreateUDiv(builder.CreateTrunc(a, i32), builder.CreateTrunc(b, i32));
  builder.CreateRet(builder.CreateZExt(quotient, i64));
  builder.SetInsertPoint(wide);
  auto *division = cast<BinaryOperator>(builder.CreateUDiv(a, b));
  builder.CreateRet(division);
  expandDivision(division);
  return function;
}

namespace {

/// Replacements of one scalar operation, made before it.
class Expander {
public:
  explicit Expander(Instruction *at) : b(at), module(*at->getModule()) {}

  Value *expand(unsigned opcode, Value *x, Value *y, Type *type) {
    switch (opcode) {
    case Instruction::UDiv:
      return divide(x, y);
    case Instruction::URem:
      return remainder(x, y, divide(x, y));
    case Instruction::SDiv:
      return divideSigned(x, y);
    case Instruction::SRem:
      return remainder(x, y, divideSigned(x, y));
    case Instruction::UIToFP:
      return toFloat(x, type, /*isSigned=*/false);
    case Instruction::SIToFP:
      return toFloat(x, type, /*isSigned=*/true);
    case Instruction::FPToUI:
      return toUnsigned(extend(x));
    default: // FPToSI
      return toSigned(extend(x));
    }
  }

private:
  Value *i64(uint64_t value) { return b.getInt64(value); }
  Value *f64(double value) { return ConstantFP::get(b.getDoubleTy(), value); }
  Value *extend(Value *x) { return b.CreateFPExt(x, b.getDoubleTy()); }

  Value *divide(Value *x, Value *y) { return b.CreateCall(getDivision(module), {x, y}); }
  Value *remainder(Value *x, Value *y, Value *quotient) { return b.CreateSub(x, b.CreateMul(quotient, y)); }
  /// All ones where x is negative.
  Value *signOf(Value *x) { return b.CreateAShr(x, 63); }
  Value *negateBy(Value *x, Value *sign) { return b.CreateSub(b.CreateXor(x, sign), sign); }
  Value *divideSigned(Value *x, Value *y) {
    Value *left = signOf(x), *right = signOf(y);
    return negateBy(divide(negateBy(x, left), negateBy(y, right)), b.CreateXor(left, right));
  }

  Value *toDouble(Value *x, bool isSigned) {
    Value *high = b.CreateTrunc(b.CreateLShr(x, 32), b.getInt32Ty()), *low = b.CreateTrunc(x, b.getInt32Ty());
    Value *top = isSigned ? b.CreateSIToFP(high, b.getDoubleTy()) : b.CreateUIToFP(high, b.getDoubleTy());
    return b.CreateFAdd(b.CreateFMul(top, f64(0x1p32)), b.CreateUIToFP(low, b.getDoubleTy()));
  }
  Value *toFloat(Value *x, Type *type, bool isSigned) {
    if (type->isDoubleTy())
      return toDouble(x, isSigned);
    // Up to 2^53 f64 holds it. Above, bits 0 to 10 are below the last place of f64 and far below that of f32.
    Value *marked =
        b.CreateAnd(b.CreateOr(x, b.CreateAdd(b.CreateAnd(x, i64(0x7ff)), i64(0x7ff))), i64(~0x7ffull));
    Value *magnitude = isSigned ? negateBy(x, signOf(x)) : x;
    Value *isSmall = b.CreateICmpULE(magnitude, i64(uint64_t(1) << 53));
    return b.CreateFPTrunc(toDouble(b.CreateSelect(isSmall, x, marked), isSigned), type);
  }

  /// Of 0 <= x < 2^64.
  Value *toUnsigned(Value *x) {
    Value *high = b.CreateFPToUI(b.CreateFMul(x, f64(0x1p-32)), b.getInt32Ty());
    Value *rest = b.CreateFSub(x, b.CreateFMul(b.CreateUIToFP(high, b.getDoubleTy()), f64(0x1p32)));
    Value *low = b.CreateFPToUI(rest, b.getInt32Ty());
    return b.CreateOr(b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32), b.CreateZExt(low, b.getInt64Ty()));
  }
  Value *toSigned(Value *x) {
    Value *isNegative = b.CreateFCmpOLT(x, f64(0));
    Value *magnitude = toUnsigned(b.CreateSelect(isNegative, b.CreateFNeg(x), x));
    return b.CreateSelect(isNegative, b.CreateNeg(magnitude), magnitude);
  }

  IRBuilder<> b;
  Module &module;
};

} // namespace

/// Whether LLVM would make a call of it.
static bool isLong(const Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case Instruction::UDiv:
  case Instruction::URem:
  case Instruction::SDiv:
  case Instruction::SRem:
  case Instruction::FPToUI:
  case Instruction::FPToSI:
    return instruction.getType()->getScalarType()->isIntegerTy(64);
  case Instruction::UIToFP:
  case Instruction::SIToFP:
    return instruction.getOperand(0)->getType()->getScalarType()->isIntegerTy(64);
  default:
    return false;
  }
}

static void expand(Instruction *instruction) {
  Expander expander(instruction);
  IRBuilder<> b(instruction);
  Value *x = instruction->getOperand(0),
        *y = instruction->getNumOperands() > 1 ? instruction->getOperand(1) : nullptr;
  Type *type = instruction->getType();
  unsigned opcode = instruction->getOpcode();
  Value *result;
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    result = PoisonValue::get(type);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      Value *right = y ? b.CreateExtractElement(y, lane) : nullptr;
      Value *each = expander.expand(opcode, b.CreateExtractElement(x, lane), right, vector->getElementType());
      result = b.CreateInsertElement(result, each, lane);
    }
  } else {
    result = expander.expand(opcode, x, y, type);
  }
  instruction->replaceAllUsesWith(result);
  instruction->eraseFromParent();
}

void expandLongIntegers(Module &module) {
  SmallVector<Instruction *> found;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (isLong(instruction))
          found.push_back(&instruction);
  for (Instruction *instruction : found)
    expand(instruction);
}

} // namespace ortc::cpu
