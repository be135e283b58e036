// bf16 is the upper half of a f32; f16 has another bias, and subnormals within the range of normal f32 numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/StorageConversion.h"

#include "compiler/backends/emit/FloatBuilder.h"

using namespace mlir;

namespace ortc::emit {

/// `type`, or vectors of it where `like` is one.
static Type shapedAs(Value like, Type type) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(vector.clone(type)) : type;
}

/// Of the bits of f16 numbers.
static Value extendHalf(FloatBuilder &b, Value wide) {
  Value sign = b.shiftLeft(b.iand(wide, b.integer(0x8000)), 16);
  Value magnitude = b.shiftLeft(b.iand(wide, b.integer(0x7fff)), 13);
  auto below = [&](int64_t limit) { return b.lessSigned(magnitude, b.integer(limit << 13)); };
  auto rebased = [&](int64_t exponents) { return b.iadd(magnitude, b.integer(exponents << 23)); };
  // A subnormal counts units of 2^-24: as the fraction of a number in [2^-14, 2^-13) it is no denormal f32, which a
  // step would take for zero. Infinity and NaN have all exponent bits in both formats.
  Value subnormal = b.toBits(b.sub(b.fromBits(rebased(113)), b.constant(0x1p-14)));
  Value special = b.select(below(0x7c01), rebased(224), b.ior(rebased(224), b.integer(0x400000)));
  Value result = b.select(below(0x400), subnormal, b.select(below(0x7c00), rebased(112), special));
  return b.fromBits(b.ior(result, sign));
}

/// The bits of f16 numbers.
static Value truncateToHalf(FloatBuilder &b, Value value) {
  Value bits = b.toBits(value);
  Value sign = b.iand(b.shiftRight(bits, 16), b.integer(0x8000));
  Value magnitude = b.iand(bits, b.integer(0x7fffffff));
  Value lowest = b.iand(b.shiftRight(magnitude, 13), b.integer(1));
  Value normal = b.shiftRight(
      b.iadd(b.isub(magnitude, b.integer(int64_t(112) << 23)), b.iadd(lowest, b.integer(0xfff))), 13);
  // Below 2^-14 the sum with 0.5 has the rounded subnormal in its low bits.
  Value subnormal = b.isub(b.toBits(b.add(b.fromBits(magnitude), b.constant(0.5))), b.integer(0x3f000000));
  auto below = [&](int64_t limit) { return b.lessSigned(magnitude, b.integer(limit)); };
  Value result = b.select(below(int64_t(113) << 23), subnormal, normal);
  result = b.select(below(0x477ff000), result, b.integer(0x7c00)); // 65520 and above round to infinity
  Value nan = b.ior(b.iand(b.shiftRight(magnitude, 13), b.integer(0x1ff)), b.integer(0x7e00));
  return b.ior(b.select(b.isNan(value), nan, result), sign);
}

Value extendToF32(OpBuilder &builder, Location loc, Value bits, Type elementType) {
  Type f32 = shapedAs(bits, builder.getF32Type());
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return integer.isUnsigned() ? arith::UIToFPOp::create(builder, loc, f32, bits).getResult()
                                : arith::SIToFPOp::create(builder, loc, f32, bits).getResult();
  if (elementType.isF16()) {
    Value half = arith::BitcastOp::create(builder, loc, shapedAs(bits, elementType), bits);
    return arith::ExtFOp::create(builder, loc, f32, half);
  }
  FloatBuilder b(builder, loc, f32, false);
  return b.fromBits(b.shiftLeft(arith::ExtUIOp::create(builder, loc, b.intType(), bits), 16));
}

Value truncateFromF32(OpBuilder &builder, Location loc, Value value, Type elementType) {
  Type i16 = shapedAs(value, builder.getI16Type());
  if (elementType.isF16()) {
    Value half = arith::TruncFOp::create(builder, loc, shapedAs(value, elementType), value);
    return arith::BitcastOp::create(builder, loc, i16, half);
  }
  FloatBuilder b(builder, loc, value.getType(), false);
  Value bits = b.toBits(value);
  // Round to nearest even: add just under half, plus the lowest kept bit.
  Value lowest = b.iand(b.shiftRight(bits, 16), b.integer(1));
  Value result = b.shiftRight(b.iadd(bits, b.iadd(lowest, b.integer(0x7fff))), 16);
  result = b.select(b.isNan(value), b.ior(b.shiftRight(bits, 16), b.integer(0x40)), result);
  return arith::TruncIOp::create(builder, loc, i16, result);
}

void expandHalfConversions(ModuleOp module) {
  module->walk([](Operation *op) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value result;
    if (auto extend = dyn_cast<arith::ExtFOp>(op); extend && getElementTypeOrSelf(extend.getIn()).isF16()) {
      FloatBuilder b(builder, loc, extend.getType(), false);
      Value bits =
          arith::BitcastOp::create(builder, loc, shapedAs(extend, builder.getI16Type()), extend.getIn());
      result = extendHalf(b, arith::ExtUIOp::create(builder, loc, b.intType(), bits));
    } else if (auto truncate = dyn_cast<arith::TruncFOp>(op);
               truncate && getElementTypeOrSelf(truncate.getType()).isF16()) {
      FloatBuilder b(builder, loc, truncate.getIn().getType(), false);
      Value bits = truncateToHalf(b, truncate.getIn());
      bits = arith::TruncIOp::create(builder, loc, shapedAs(truncate, builder.getI16Type()), bits);
      result = arith::BitcastOp::create(builder, loc, truncate.getType(), bits);
    } else {
      return;
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  });
}

} // namespace ortc::emit
