// bf16 is the upper half of a f32; f16 has another bias, and subnormals within the range of normal f32 numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/StorageConversion.h"

#include "compiler/backends/emit/FloatBuilder.h"

using namespace mlir;

namespace ortc::emit {

Value extendToF32(OpBuilder &builder, Location loc, Value bits, Type elementType) {
  Type f32 = builder.getF32Type();
  if (auto vector = dyn_cast<VectorType>(bits.getType()))
    f32 = vector.clone(f32);
  FloatBuilder b(builder, loc, f32, false);
  Value wide = arith::ExtUIOp::create(builder, loc, b.intType(), bits);
  if (elementType.isBF16())
    return b.fromBits(b.shiftLeft(wide, 16));
  Value sign = b.shiftLeft(b.iand(wide, b.integer(0x8000)), 16);
  Value magnitude = b.shiftLeft(b.iand(wide, b.integer(0x7fff)), 13);
  auto below = [&](int64_t limit) {
    return Value(
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, magnitude, b.integer(limit << 13)));
  };
  auto rebased = [&](int64_t exponents) { return b.iadd(magnitude, b.integer(exponents << 23)); };
  // A subnormal counts units of 2^-24: as the fraction of a number in [2^-14, 2^-13) it is no denormal f32, which a
  // step would take for zero. Infinity and NaN have all exponent bits in both formats.
  Value subnormal = b.toBits(b.sub(b.fromBits(rebased(113)), b.constant(0x1p-14)));
  Value result = b.select(below(0x400), subnormal, b.select(below(0x7c00), rebased(112), rebased(224)));
  return b.fromBits(b.ior(result, sign));
}

Value truncateFromF32(OpBuilder &builder, Location loc, Value value, Type elementType) {
  FloatBuilder b(builder, loc, value.getType(), false);
  Type i16 = b.withElement(builder.getIntegerType(16));
  Value bits = b.toBits(value);
  Value isNan = b.isNan(value);
  Value result;
  if (elementType.isBF16()) {
    // Round to nearest even: add just under half, plus the lowest kept bit.
    Value lowest = b.iand(b.shiftRight(bits, 16), b.integer(1));
    result = b.shiftRight(b.iadd(bits, b.iadd(lowest, b.integer(0x7fff))), 16);
    result = b.select(isNan, b.ior(b.shiftRight(bits, 16), b.integer(0x40)), result);
  } else {
    Value sign = b.iand(b.shiftRight(bits, 16), b.integer(0x8000));
    Value magnitude = b.iand(bits, b.integer(0x7fffffff));
    Value lowest = b.iand(b.shiftRight(magnitude, 13), b.integer(1));
    Value normal = b.shiftRight(
        b.iadd(b.isub(magnitude, b.integer(int64_t(112) << 23)), b.iadd(lowest, b.integer(0xfff))), 13);
    // Below 2^-14 the sum with 0.5 has the rounded subnormal in its low bits.
    Value subnormal = b.isub(b.toBits(b.add(b.fromBits(magnitude), b.constant(0.5))), b.integer(0x3f000000));
    auto below = [&](int64_t limit) {
      return Value(
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, magnitude, b.integer(limit)));
    };
    result = b.select(below(int64_t(113) << 23), subnormal, normal);
    result = b.select(below(0x477ff000), result, b.integer(0x7c00)); // 65520 and above round to infinity
    result = b.ior(b.select(isNan, b.integer(0x7e00), result), sign);
  }
  return arith::TruncIOp::create(builder, loc, i16, result);
}

} // namespace ortc::emit
