// Arith and math on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Kernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace ortc::evaluator {

using FloatFunction = double (*)(double, double);
using IntFunction = int64_t (*)(int64_t, int64_t);

/// Floating-point operations of one or two operands by name; the second argument of unary ones is unused.
static FloatFunction findFloatFunction(StringRef name) {
  static const llvm::StringMap<FloatFunction> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.remf", [](double a, double b) { return std::fmod(a, b); }},
      {"arith.negf", [](double a, double) { return -a; }},
      {"arith.extf", [](double a, double) { return a; }},
      {"arith.truncf", [](double a, double) { return a; }},
      {"math.absf", [](double a, double) { return std::fabs(a); }},
      {"math.acos", [](double a, double) { return std::acos(a); }},
      {"math.acosh", [](double a, double) { return std::acosh(a); }},
      {"math.asin", [](double a, double) { return std::asin(a); }},
      {"math.asinh", [](double a, double) { return std::asinh(a); }},
      {"math.atan", [](double a, double) { return std::atan(a); }},
      {"math.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"math.atanh", [](double a, double) { return std::atanh(a); }},
      {"math.ceil", [](double a, double) { return std::ceil(a); }},
      {"math.copysign", [](double a, double b) { return std::copysign(a, b); }},
      {"math.cos", [](double a, double) { return std::cos(a); }},
      {"math.cosh", [](double a, double) { return std::cosh(a); }},
      {"math.erf", [](double a, double) { return std::erf(a); }},
      {"math.erfc", [](double a, double) { return std::erfc(a); }},
      {"math.exp", [](double a, double) { return std::exp(a); }},
      {"math.exp2", [](double a, double) { return std::exp2(a); }},
      {"math.expm1", [](double a, double) { return std::expm1(a); }},
      {"math.floor", [](double a, double) { return std::floor(a); }},
      {"math.log", [](double a, double) { return std::log(a); }},
      {"math.log10", [](double a, double) { return std::log10(a); }},
      {"math.log1p", [](double a, double) { return std::log1p(a); }},
      {"math.log2", [](double a, double) { return std::log2(a); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
      {"math.round", [](double a, double) { return std::round(a); }},
      {"math.roundeven", [](double a, double) { return std::nearbyint(a); }},
      {"math.rsqrt", [](double a, double) { return 1.0 / std::sqrt(a); }},
      {"math.sin", [](double a, double) { return std::sin(a); }},
      {"math.sinh", [](double a, double) { return std::sinh(a); }},
      {"math.sqrt", [](double a, double) { return std::sqrt(a); }},
      {"math.tan", [](double a, double) { return std::tan(a); }},
      {"math.tanh", [](double a, double) { return std::tanh(a); }},
      {"math.trunc", [](double a, double) { return std::trunc(a); }},
  };
  return table.lookup(name);
}

// Integer arithmetic wraps; division by zero gives 0, as no value is right.
static int64_t divideTowards(int64_t a, int64_t b, int rounding) {
  if (b == 0)
    return 0;
  if (b == -1)
    return static_cast<int64_t>(-static_cast<uint64_t>(a));
  int64_t quotient = a / b;
  if (a % b != 0 && rounding != 0 && ((a < 0) == (b < 0)) == (rounding > 0))
    quotient += rounding;
  return quotient;
}

static IntFunction findIntFunction(StringRef name) {
  static const llvm::StringMap<IntFunction> table = {
      {"arith.addi", [](int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }},
      {"arith.subi", [](int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) - uint64_t(b)); }},
      {"arith.muli", [](int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }},
      {"arith.divsi", [](int64_t a, int64_t b) { return divideTowards(a, b, 0); }},
      {"arith.floordivsi", [](int64_t a, int64_t b) { return divideTowards(a, b, -1); }},
      {"arith.ceildivsi", [](int64_t a, int64_t b) { return divideTowards(a, b, 1); }},
      {"arith.remsi", [](int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }},
      {"arith.andi", [](int64_t a, int64_t b) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b) { return a ^ b; }},
      {"arith.maxsi", [](int64_t a, int64_t b) { return a > b ? a : b; }},
      {"arith.minsi", [](int64_t a, int64_t b) { return a < b ? a : b; }},
      {"arith.trunci", [](int64_t a, int64_t) { return a; }},
      {"arith.extsi", [](int64_t a, int64_t) { return a; }},
      {"math.absi", [](int64_t a, int64_t) { return a < 0 ? static_cast<int64_t>(-uint64_t(a)) : a; }},
      {"math.ipowi",
       [](int64_t a, int64_t b) {
         if (b < 0)
           return a == 1 ? int64_t(1) : a == -1 ? (b & 1 ? int64_t(-1) : int64_t(1)) : int64_t(0);
         uint64_t result = 1, base = uint64_t(a);
         for (; b; b >>= 1, base *= base)
           if (b & 1)
             result *= base;
         return static_cast<int64_t>(result);
       }},
  };
  return table.lookup(name);
}

/// An integer without its sign extension.
static uint64_t unsignedBits(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

using UnsignedFunction = int64_t (*)(uint64_t, uint64_t, unsigned width);

/// Unsigned operations and shifts, which need the operands' width.
static UnsignedFunction findUnsignedFunction(StringRef name) {
  static const llvm::StringMap<UnsignedFunction> table = {
      {"arith.extui", [](uint64_t a, uint64_t, unsigned) { return static_cast<int64_t>(a); }},
      {"arith.divui", [](uint64_t a, uint64_t b, unsigned) { return static_cast<int64_t>(b ? a / b : 0); }},
      {"arith.remui", [](uint64_t a, uint64_t b, unsigned) { return static_cast<int64_t>(b ? a % b : 0); }},
      {"arith.maxui", [](uint64_t a, uint64_t b, unsigned) { return static_cast<int64_t>(a > b ? a : b); }},
      {"arith.minui", [](uint64_t a, uint64_t b, unsigned) { return static_cast<int64_t>(a < b ? a : b); }},
      {"arith.shli",
       [](uint64_t a, uint64_t b, unsigned width) { return static_cast<int64_t>(b < width ? a << b : 0); }},
      {"arith.shrui",
       [](uint64_t a, uint64_t b, unsigned width) { return static_cast<int64_t>(b < width ? a >> b : 0); }},
      {"arith.shrsi",
       [](uint64_t a, uint64_t b, unsigned width) {
         return llvm::SignExtend64(a, width) >> std::min<uint64_t>(b, 63);
       }},
  };
  return table.lookup(name);
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return !unordered && a == b;
  case arith::CmpFPredicate::OGT:
    return !unordered && a > b;
  case arith::CmpFPredicate::OGE:
    return !unordered && a >= b;
  case arith::CmpFPredicate::OLT:
    return !unordered && a < b;
  case arith::CmpFPredicate::OLE:
    return !unordered && a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("all predicates are listed");
}

static bool compareInts(arith::CmpIPredicate predicate, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = unsignedBits(a, width), ub = unsignedBits(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("all predicates are listed");
}

/// Truncation towards zero; what does not fit saturates and NaN gives 0, as generated code does.
static int64_t floatToInt(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  // the first number that is too large
  double limit = std::ldexp(1.0, static_cast<int>(isSigned ? width - 1 : width));
  if (value >= limit)
    return isSigned ? llvm::maxIntN(width) : static_cast<int64_t>(llvm::maxUIntN(width));
  if (isSigned)
    return value < -limit ? llvm::minIntN(width) : static_cast<int64_t>(value);
  return value < 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
}

/// Element i of `from` with its bits read as the type of `to`.
static void bitcast(const HostTensor &from, int64_t i, HostTensor &to) {
  Type element = from.getType().getElementType();
  unsigned width = element.getIntOrFloatBitWidth();
  APInt bits(64, static_cast<uint64_t>(from.isFloat() ? 0 : from.getInt(i)));
  bits = bits.trunc(width);
  bool losesInfo;
  if (from.isFloat()) {
    APFloat number(from.getFloat(i));
    number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt();
  }
  if (!to.isFloat())
    return to.setInt(i, bits.getSExtValue());
  APFloat number(cast<FloatType>(to.getType().getElementType()).getFloatSemantics(), bits);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  to.setFloat(i, number.convertToDouble());
}

FamilyResult evaluateElementwise(Operation *op, Operands operands) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto tensor = HostTensor::fromAttribute(cast<ElementsAttr>(constant.getValue()));
    if (failed(tensor))
      return FailureOr<Results>(failure());
    return single(std::move(*tensor));
  }
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return std::nullopt;
  StringRef name = op->getName().getStringRef();
  HostTensor result(resultType(op));
  int64_t count = result.size();
  Type element = result.getType().getElementType();
  unsigned width = operands.empty() ? 0 : operands[0]->getType().getElementType().getIntOrFloatBitWidth();

  if (FloatFunction function = findFloatFunction(name)) {
    for (int64_t i = 0; i < count; ++i)
      result.setFloat(i,
                      function(operands[0]->getFloat(i), operands.size() > 1 ? operands[1]->getFloat(i) : 0));
  } else if (IntFunction function = findIntFunction(name)) {
    for (int64_t i = 0; i < count; ++i)
      result.setInt(i, function(operands[0]->getInt(i), operands.size() > 1 ? operands[1]->getInt(i) : 0));
  } else if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setInt(
          i, compareFloats(compare.getPredicate(), operands[0]->getFloat(i), operands[1]->getFloat(i)));
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setInt(
          i, compareInts(compare.getPredicate(), operands[0]->getInt(i), operands[1]->getInt(i), width));
  } else if (isa<arith::SelectOp>(op)) {
    bool uniform = operands[0]->size() == 1 && count != 1;
    for (int64_t i = 0; i < count; ++i)
      result.copy(i, operands[0]->getInt(uniform ? 0 : i) ? *operands[1] : *operands[2], i);
  } else if (isa<arith::SIToFPOp>(op)) {
    bool boolean = operands[0]->getType().getElementType().isInteger(1);
    for (int64_t i = 0; i < count; ++i)
      result.setFloat(i, static_cast<double>(boolean ? -operands[0]->getInt(i) : operands[0]->getInt(i)));
  } else if (isa<arith::UIToFPOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setFloat(i, static_cast<double>(unsignedBits(operands[0]->getInt(i), width)));
  } else if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setInt(
          i, floatToInt(operands[0]->getFloat(i), element.getIntOrFloatBitWidth(), isa<arith::FPToSIOp>(op)));
  } else if (isa<arith::BitcastOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      bitcast(*operands[0], i, result);
  } else if (isa<math::FmaOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setFloat(i,
                      std::fma(operands[0]->getFloat(i), operands[1]->getFloat(i), operands[2]->getFloat(i)));
  } else if (isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op)) {
    for (int64_t i = 0; i < count; ++i) {
      double value = operands[0]->getFloat(i);
      result.setInt(i, isa<math::IsNaNOp>(op)   ? std::isnan(value)
                       : isa<math::IsInfOp>(op) ? std::isinf(value)
                                                : std::isfinite(value));
    }
  } else if (isa<math::FPowIOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      result.setFloat(i, std::pow(operands[0]->getFloat(i), static_cast<double>(operands[1]->getInt(i))));
  } else if (UnsignedFunction function = findUnsignedFunction(name)) {
    for (int64_t i = 0; i < count; ++i)
      result.setInt(i,
                    function(unsignedBits(operands[0]->getInt(i), width),
                             operands.size() > 1 ? unsignedBits(operands[1]->getInt(i), width) : 0, width));
  } else {
    return std::nullopt;
  }
  return single(std::move(result));
}

} // namespace ortc::evaluator
