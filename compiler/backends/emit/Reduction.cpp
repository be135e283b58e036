// Reductions: where they begin and how two partial results become one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/Reduction.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;

namespace ortc::emit {

Type accumulatorType(Type element) {
  return element.isF16() || element.isBF16() ? Float32Type::get(element.getContext()) : element;
}

/// The value of a reduction before its first element.
Value reductionIdentity(LoopBuilder &b, nn::ReduceKind kind, Type type, int64_t width) {
  TypedAttr attribute;
  if (auto floating = dyn_cast<FloatType>(type)) {
    double inf = std::numeric_limits<double>::infinity();
    double value = kind == nn::ReduceKind::sum    ? 0
                   : kind == nn::ReduceKind::prod ? 1
                   : kind == nn::ReduceKind::max  ? -inf
                                                  : inf;
    attribute = b.getFloatAttr(floating, value);
  } else {
    unsigned bits = type.getIntOrFloatBitWidth();
    // Booleans: max is or, min is and.
    APInt value = kind == nn::ReduceKind::sum    ? APInt::getZero(bits)
                  : kind == nn::ReduceKind::prod ? APInt(bits, 1)
                  : bits == 1                    ? APInt(1, kind == nn::ReduceKind::min)
                  : kind == nn::ReduceKind::max  ? APInt::getSignedMinValue(bits)
                                                 : APInt::getSignedMaxValue(bits);
    attribute = b.getIntegerAttr(type, value);
  }
  if (width == 0)
    return arith::ConstantOp::create(b, attribute);
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({width}, type), Attribute(attribute)));
}

Value combine(LoopBuilder &b, nn::ReduceKind kind, Value x, Value y) {
  Type type = getElementTypeOrSelf(x.getType());
  bool isFloat = isa<FloatType>(type);
  switch (kind) {
  case nn::ReduceKind::sum:
    return isFloat ? arith::AddFOp::create(b, x, y).getResult() : arith::AddIOp::create(b, x, y).getResult();
  case nn::ReduceKind::prod:
    return isFloat ? arith::MulFOp::create(b, x, y).getResult() : arith::MulIOp::create(b, x, y).getResult();
  case nn::ReduceKind::max:
  case nn::ReduceKind::min: {
    bool max = kind == nn::ReduceKind::max;
    if (type.isInteger(1))
      return max ? arith::OrIOp::create(b, x, y).getResult() : arith::AndIOp::create(b, x, y).getResult();
    if (!isFloat)
      return max ? arith::MaxSIOp::create(b, x, y).getResult() : arith::MinSIOp::create(b, x, y).getResult();
    // One instruction where the maximum is "x unless y is greater", as many processors have it, which lets a NaN of
    // x through. One of y makes all bits ones: a NaN, too.
    Value first = arith::CmpFOp::create(b, max ? arith::CmpFPredicate::UGE : arith::CmpFPredicate::ULE, x, y);
    Value chosen = arith::SelectOp::create(b, first, x, y);
    Type bitsType = b.getIntegerType(type.getIntOrFloatBitWidth());
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      bitsType = vector.clone(bitsType);
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
    Value bits = arith::BitcastOp::create(b, bitsType, chosen);
    bits = arith::OrIOp::create(b, bits, arith::ExtSIOp::create(b, bitsType, isNan));
    return arith::BitcastOp::create(b, x.getType(), bits);
  }
  }
  llvm_unreachable("all kinds are handled");
}

Value combineStored(LoopBuilder &b, nn::ReduceKind kind, Type element, Value x, Value y) {
  if (element.isF16() || element.isBF16()) {
    Value sum =
        combine(b, kind, extendToF32(b, b.getLoc(), x, element), extendToF32(b, b.getLoc(), y, element));
    return truncateFromF32(b, b.getLoc(), sum, element);
  }
  if (element.isInteger(1)) {
    // Bytes that are zero or one.
    if (kind == nn::ReduceKind::sum)
      return arith::XOrIOp::create(b, x, y);
    return kind == nn::ReduceKind::max ? arith::OrIOp::create(b, x, y).getResult()
                                       : arith::AndIOp::create(b, x, y).getResult();
  }
  return combine(b, kind, x, y);
}

} // namespace ortc::emit
