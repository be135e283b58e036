// Integer functions that do arithmetic of f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/object/IntegerCode.h"

namespace ortc::cpu {

/// Functions on the bits of f64 numbers (i64), made when they are first asked for. They are internal, are not inlined,
/// and call nothing but each other.
class DoubleFunctions : IntegerCode {
public:
  enum Rounding { ToPositive, ToNegative, ToZero, ToEven };
  static constexpr int64_t kBias = 1023;

  /// Of a `fused` module, which has multiply-adds anyway, sums and products are multiply-adds: less code.
  DoubleFunctions(llvm::Module &module, bool fused);

  llvm::Function *add();         ///< i64 (i64, i64)
  llvm::Function *multiply();    ///< i64 (i64, i64)
  llvm::Function *divide();      ///< i64 (i64, i64)
  llvm::Function *multiplyAdd(); ///< i64 (i64 a, i64 b, i64 c): a * b + c, rounded once
  llvm::Function *squareRoot();  ///< i64 (i64)
  llvm::Function *compare();     ///< i32 (i64, i64): the one bit that predicates of fcmp have for what holds
  llvm::Function *toIntegral();  ///< i64 (i64, i32): rounded as the Rounding says
  llvm::Function *toInteger();   ///< i64 (i64): towards zero, of what an i64 or an unsigned i64 holds
  llvm::Function *extend();      ///< i64 (i32): of the bits of f32
  // To f64, whose bits are an i64, or to f32, f16 or bf16, whose bits are the lowest of an i32:
  llvm::Function *truncate(llvm::Type *type);   ///< (i64): of an f64
  llvm::Function *fromSigned(llvm::Type *type); ///< (i64): of an integer
  /// (i64 mantissa, i32 exponent, i32 sign): mantissa / 2^63 * 2^(exponent - 1023), negative where the top bit of
  /// `sign` is set. The lowest bit of the mantissa stands for all below it.
  llvm::Function *round(llvm::Type *type);

private:
  struct Number {
    Value *mantissa, *exponent;
  };

  llvm::Function *normalize();
  llvm::Function *unpack();
  llvm::Function *shiftRight();
  llvm::Function *roundWide();
  llvm::Function *roundNarrow(llvm::Type *type);

  llvm::Type *bitsOf(llvm::Type *type) { return type->isDoubleTy() ? i64 : i32; }
  Number callUnpack(Value *bits) {
    Value *pair = b.CreateCall(unpack(), {bits});
    return {b.CreateExtractValue(pair, 0), b.CreateExtractValue(pair, 1)};
  }
  Value *callRound(Value *mantissa, Value *exponent, Value *sign) {
    return b.CreateCall(roundWide(), {mantissa, exponent, sign});
  }
  Value *callShiftRight(Value *mantissa, Value *count) {
    return b.CreateCall(shiftRight(), {mantissa, count});
  }
  std::pair<Value *, Value *> multiplyWide(Value *x, Value *y);

  llvm::StructType *number;
  bool fused;
};

} // namespace ortc::cpu
