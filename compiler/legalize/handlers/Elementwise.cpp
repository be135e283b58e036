// Arithmetic, comparison, logic, casts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "compiler/legalize/WrittenOut.h"
#include "dialects/onnx/InitializerOrigin.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

/// Both operands under one shape.
static LogicalResult operandPair(Node &n, Value &a, Value &c) {
  Value pair[2] = {n[0], n[1]};
  if (failed(n.broadcast(pair)))
    return failure();
  a = pair[0];
  c = pair[1];
  if (TensorBuilder::elementOf(a) != TensorBuilder::elementOf(c))
    return n.refuse("its operands have different element types");
  return success();
}

/// `apply` to both operands under one shape.
template <typename Apply> static LogicalResult binary(Node &n, Apply apply) {
  Value a, c;
  return failed(operandPair(n, a, c)) ? failure() : n.yield(apply(n.b, a, c));
}

LogicalResult add(Node &n) {
  return binary(n, [](TensorBuilder &b, Value a, Value c) { return b.add(a, c); });
}

LogicalResult sub(Node &n) {
  return binary(n, [](TensorBuilder &b, Value a, Value c) {
    Value known = subtractWrittenOut(b, a, c);
    return known ? known : b.sub(a, c);
  });
}

LogicalResult mul(Node &n) {
  return binary(n, [](TensorBuilder &b, Value a, Value c) { return b.mul(a, c); });
}

LogicalResult div(Node &n) {
  return binary(n, [&](TensorBuilder &b, Value a, Value c) {
    return n.isUnsigned(0) ? b.createOrFold<arith::DivUIOp>(a, c) : b.div(a, c);
  });
}

LogicalResult mod(Node &n) {
  Value a, c;
  if (failed(operandPair(n, a, c)))
    return failure();
  TensorBuilder &b = n.b;
  if (n.isFloat(0)) {
    Value rest = b.createOrFold<arith::RemFOp>(a, c), zero = b.zerosLike(a);
    if (n.getInt("fmod", 0) == 1)
      return n.yield(rest);
    // From opset 28 on, the sign of the divisor.
    Value differs = b.createOrFold<arith::XOrIOp>(b.compare(FloatPredicate::OLT, rest, zero),
                                                  b.compare(FloatPredicate::OLT, c, zero));
    Value wrap = b.logicalAnd(differs, b.compare(FloatPredicate::UNE, rest, zero));
    return n.yield(b.select(wrap, b.add(rest, c), rest));
  }
  if (n.isUnsigned(0))
    return n.yield(b.createOrFold<arith::RemUIOp>(a, c));
  Value rest = b.createOrFold<arith::RemSIOp>(a, c);
  if (n.getInt("fmod", 0) == 1)
    return n.yield(rest);
  // The sign of the divisor: where rest and divisor differ in sign, one divisor more.
  Value zero = b.zerosLike(a);
  Value differs = b.createOrFold<arith::XOrIOp>(b.compare(IntPredicate::slt, rest, zero),
                                                b.compare(IntPredicate::slt, c, zero));
  Value wrap = b.logicalAnd(differs, b.compare(IntPredicate::ne, rest, zero));
  return n.yield(b.select(wrap, b.add(rest, c), rest));
}

LogicalResult pow(Node &n) {
  TensorBuilder &b = n.b;
  Value base = n[0], exponent = n[1];
  if (!n.isFloat(0)) {
    if (n.isFloat(1))
      exponent = b.cast(exponent, b.getF64Type()), base = b.cast(base, b.getF64Type(), n.isUnsigned(0));
    else
      exponent = b.cast(exponent, n.element(0));
  }
  const HostTensor *known = n.constant(1);
  if (n.isFloat(0) && known && known->size() > 0) {
    auto valueAt = [&](int64_t i) {
      return known->isFloat() ? known->getFloat(i) : static_cast<double>(known->getInt(i));
    };
    bool uniform = llvm::all_of(llvm::seq<int64_t>(0, known->size()),
                                [&](int64_t i) { return valueAt(i) == valueAt(0); });
    Shape shape;
    if (failed(n.broadcastShape({n[0], n[1]}, shape)))
      return failure();
    if (Value norm = uniform ? rootOfSquares(b, b.broadcastTo(base, shape), valueAt(0)) : Value())
      return n.yield(norm);
    if (Value result = uniform ? power(b, b.broadcastTo(base, shape), valueAt(0)) : Value())
      return n.yield(result);
  }
  if (isa<FloatType>(TensorBuilder::elementOf(base)))
    exponent = b.cast(exponent, TensorBuilder::elementOf(base));
  Value pair[2] = {base, exponent};
  if (failed(n.broadcast(pair)))
    return failure();
  if (isa<FloatType>(TensorBuilder::elementOf(base))) {
    Value result = b.pow(pair[0], pair[1]);
    if (!n.isFloat(0)) { // a whole number must not fall short by the error of pow
      Value whole = math::RoundEvenOp::create(b, result), bound = b.mulScalar(b.abs(result), 1e-13);
      result =
          b.select(b.compare(arith::CmpFPredicate::OLE, b.abs(b.sub(result, whole)), bound), whole, result);
    }
    return n.yieldAs(b.cast(result, n.element(0), false, n.isUnsigned(0)), n.isUnsigned(0));
  }
  return n.yieldAs(b.createOrFold<math::IPowIOp>(pair[0], pair[1]), n.isUnsigned(0));
}

/// `unsignedOrder`: of booleans, too.
static LogicalResult compare(Node &n, FloatPredicate ofFloats, IntPredicate signedOrder,
                             IntPredicate unsignedOrder) {
  Value a, c;
  if (failed(operandPair(n, a, c)))
    return failure();
  bool isPlain = n.isUnsigned(0) || n.element(0).isInteger(1);
  return n.yieldAs(n.isFloat(0) ? n.b.compare(ofFloats, a, c)
                                : n.b.compare(isPlain ? unsignedOrder : signedOrder, a, c),
                   false);
}

LogicalResult equal(Node &n) { return compare(n, FloatPredicate::OEQ, IntPredicate::eq, IntPredicate::eq); }
LogicalResult less(Node &n) { return compare(n, FloatPredicate::OLT, IntPredicate::slt, IntPredicate::ult); }
LogicalResult lessOrEqual(Node &n) {
  return compare(n, FloatPredicate::OLE, IntPredicate::sle, IntPredicate::ule);
}
LogicalResult greater(Node &n) {
  return compare(n, FloatPredicate::OGT, IntPredicate::sgt, IntPredicate::ugt);
}
LogicalResult greaterOrEqual(Node &n) {
  return compare(n, FloatPredicate::OGE, IntPredicate::sge, IntPredicate::uge);
}

static LogicalResult requireBits(Node &n) {
  return n.isFloat(0) ? n.refuse("floating-point operands have no bits to combine") : success();
}

template <typename Apply> static LogicalResult bitwise(Node &n, Apply apply) {
  return failed(requireBits(n)) ? failure() : binary(n, apply);
}

LogicalResult bitwiseAnd(Node &n) {
  return bitwise(n, [](TensorBuilder &b, Value a, Value c) { return b.logicalAnd(a, c); });
}

LogicalResult bitwiseOr(Node &n) {
  return bitwise(n, [](TensorBuilder &b, Value a, Value c) { return b.logicalOr(a, c); });
}

LogicalResult bitwiseXor(Node &n) {
  return bitwise(n, [](TensorBuilder &b, Value a, Value c) { return b.createOrFold<arith::XOrIOp>(a, c); });
}

LogicalResult logicalNot(Node &n) {
  return failed(requireBits(n)) ? failure() : n.yield(n.b.logicalNot(n[0]));
}

LogicalResult bitwiseNot(Node &n) {
  return failed(requireBits(n)) ? failure()
                                : n.yield(n.b.createOrFold<arith::XOrIOp>(n[0], n.b.constantLike(n[0], -1)));
}

LogicalResult bitShift(Node &n) {
  if (n.isFloat(0))
    return n.refuse("floating-point operands cannot be shifted");
  Value a, c;
  if (failed(operandPair(n, a, c)))
    return failure();
  // Shifting by the width or more, or by less than nothing, leaves no bit, and of a negative number its sign;
  // arith leaves it open.
  TensorBuilder &b = n.b;
  bool left = n.getString("direction", "") == "LEFT";
  Value width = b.constantLike(c, n.element(0).getIntOrFloatBitWidth());
  Value fits = b.compare(IntPredicate::ult, c, width), safe = b.select(fits, c, b.zerosLike(c));
  if (left)
    return n.yield(b.select(fits, b.createOrFold<arith::ShLIOp>(a, safe), b.zerosLike(a)));
  if (n.isUnsigned(0))
    return n.yield(b.select(fits, b.createOrFold<arith::ShRUIOp>(a, safe), b.zerosLike(a)));
  Value most = b.constantLike(c, n.element(0).getIntOrFloatBitWidth() - 1);
  return n.yield(b.createOrFold<arith::ShRSIOp>(a, b.select(fits, c, most)));
}

LogicalResult neg(Node &n) { return n.yield(n.b.neg(n[0])); }
LogicalResult abs(Node &n) { return n.yield(n.isUnsigned(0) ? n[0] : n.b.abs(n[0])); }
LogicalResult exp(Node &n) { return n.yield(n.b.exp(n[0])); }
LogicalResult log(Node &n) { return n.yield(logarithm(n.b, n[0])); }
LogicalResult sqrt(Node &n) { return n.yield(root(n.b, n[0])); }
LogicalResult reciprocal(Node &n) { return n.yield(n.b.div(n.b.constantLike(n[0], 1), n[0])); }
LogicalResult erf(Node &n) { return n.yield(n.b.erf(n[0])); }

LogicalResult sign(Node &n) {
  TensorBuilder &b = n.b;
  Value x = n[0];
  if (!n.isUnsigned(0))
    return n.yield(legalize::sign(b, x));
  Value zero = b.zerosLike(x);
  return n.yield(b.select(b.compare(IntPredicate::ne, x, zero), b.constantLike(x, 1), zero));
}

template <typename Op> static LogicalResult unary(Node &n) { return n.yield(n.b.createOrFold<Op>(n[0])); }

LogicalResult floor(Node &n) { return unary<math::FloorOp>(n); }
LogicalResult ceil(Node &n) { return unary<math::CeilOp>(n); }
LogicalResult round(Node &n) { return unary<math::RoundEvenOp>(n); }
LogicalResult sin(Node &n) { return unary<math::SinOp>(n); }
LogicalResult cos(Node &n) { return unary<math::CosOp>(n); }
LogicalResult tan(Node &n) { return unary<math::TanOp>(n); }
LogicalResult asin(Node &n) { return unary<math::AsinOp>(n); }
LogicalResult acos(Node &n) { return unary<math::AcosOp>(n); }
LogicalResult atan(Node &n) { return unary<math::AtanOp>(n); }
LogicalResult sinh(Node &n) { return unary<math::SinhOp>(n); }
LogicalResult cosh(Node &n) { return unary<math::CoshOp>(n); }
LogicalResult asinh(Node &n) { return unary<math::AsinhOp>(n); }
LogicalResult acosh(Node &n) { return unary<math::AcoshOp>(n); }
LogicalResult atanh(Node &n) { return unary<math::AtanhOp>(n); }

LogicalResult isNaN(Node &n) { return n.yield(n.b.compare(FloatPredicate::UNO, n[0], n[0])); }

LogicalResult isInf(Node &n) {
  TensorBuilder &b = n.b;
  double infinity = std::numeric_limits<double>::infinity();
  Value above = b.compare(FloatPredicate::OEQ, n[0], b.constantLike(n[0], infinity));
  Value below = b.compare(FloatPredicate::OEQ, n[0], b.constantLike(n[0], -infinity));
  bool positive = n.getInt("detect_positive", 1), negative = n.getInt("detect_negative", 1);
  if (positive && negative)
    return n.yield(b.logicalOr(above, below));
  return n.yield(positive ? above : negative ? below : b.zerosLike(above));
}

/// Any number of operands, from the left; null after a refusal.
template <typename Apply> static Value accumulate(Node &n, Apply apply) {
  if (failed(n.sameElements(llvm::to_vector(llvm::seq<unsigned>(0, n.size())))))
    return {};
  SmallVector<Value> values;
  for (unsigned i = 0; i < n.size(); ++i)
    values.push_back(n[i]);
  if (failed(n.broadcast(values)))
    return {};
  Value result = values.front();
  for (Value next : llvm::drop_begin(values))
    result = apply(result, next);
  return result;
}

static Value sumOf(Node &n) {
  return accumulate(n, [&](Value a, Value c) { return n.b.add(a, c); });
}

LogicalResult sum(Node &n) {
  Value result = sumOf(n);
  return result ? n.yield(result) : failure();
}

LogicalResult mean(Node &n) {
  Value result = sumOf(n);
  return result ? n.yield(n.b.mulScalar(result, 1.0 / static_cast<double>(n.size()))) : failure();
}

/// One of two that is a bound is none where they are equal.
static LogicalResult extremumOf(Node &n, bool larger) {
  bool isBound = n.ties() == onnx::kBound && n.size() == 2;
  Value result = accumulate(n, [&](Value a, Value c) {
    return isBound ? clip(n.b, a, larger ? c : Value(), larger ? Value() : c, n.isUnsigned(0))
                   : extremum(n.b, a, c, larger, n.isUnsigned(0));
  });
  return result ? n.yield(result) : failure();
}

LogicalResult max(Node &n) { return extremumOf(n, /*larger=*/true); }
LogicalResult min(Node &n) { return extremumOf(n, /*larger=*/false); }

LogicalResult clipByAttributes(Node &n) {
  if (!n.isFloat(0))
    return n.refuse(
        "bounds that are attributes are for floating-point inputs; those of integers are operands, from "
        "opset 11 on");
  Value low = n.hasAttribute("min") ? n.b.constantLike(n[0], n.getFloat("min", 0)) : Value();
  Value high = n.hasAttribute("max") ? n.b.constantLike(n[0], n.getFloat("max", 0)) : Value();
  return n.yield(clip(n.b, n[0], low, high));
}

LogicalResult clipByOperands(Node &n) {
  if (failed(n.sameElements({0, 1, 2})))
    return failure();
  Value bounds[2];
  for (unsigned i : {0u, 1u})
    if (n.has(i + 1)) {
      if (elementCount(n.shape(i + 1)) != 1)
        return n.refuse("its bounds are no scalars");
      bounds[i] = n.b.broadcastTo(n.b.reshape(n[i + 1], {}), n.shape(0));
    }
  // A bound that is computed or trained is no number, and takes its half of the gradient where x is equal to it.
  bool isComputed = (bounds[0] && !n.constant(1)) || (bounds[1] && !n.constant(2));
  if (n.isFloat(0) && n.ties() != onnx::kBound && (isComputed || n.ties() == onnx::kShared)) {
    Value x = bounds[0] ? extremum(n.b, n[0], bounds[0], true) : n[0];
    return n.yield(bounds[1] ? extremum(n.b, x, bounds[1], false) : x);
  }
  return n.yield(clip(n.b, n[0], bounds[0], bounds[1], n.isUnsigned(0)));
}

LogicalResult where(Node &n) {
  if (failed(n.sameElements({1, 2})))
    return failure();
  if (!n.element(0).isInteger(1))
    return n.refuse("its condition is not boolean");
  Value all[3] = {n[0], n[1], n[2]};
  if (failed(n.broadcast(all)))
    return failure();
  if (n.op->hasAttr(onnx::kMaskedAttention))
    all[2] = hiddenScore(n.b, all[2]);
  Value known = chooseWrittenOut(n.b, all[0], all[1], all[2]);
  return n.yield(known ? known : choose(n.b, all[0], all[1], all[2]));
}

/// Integers as a type of 2 or 4 bits holds them: the lowest bits, sign-extended unless unsigned.
static Value wrapToLowBits(TensorBuilder &b, Value x, ElementType to) {
  if (to.isUnsigned)
    return b.logicalAnd(x, b.constantLike(x, (1 << to.lowBits) - 1));
  Value shift = b.constantLike(x, 8 - to.lowBits);
  return b.createOrFold<arith::ShRSIOp>(b.createOrFold<arith::ShLIOp>(x, shift), shift);
}

static LogicalResult castTo(Node &n, ElementType to) {
  Value result = n.b.cast(n[0], to.type, n.isUnsigned(0), to.isUnsigned && !to.lowBits);
  if (to.lowBits && n.typeOf(0).lowBits != to.lowBits)
    result =
        wrapToLowBits(n.b, n.isFloat(0) ? n.b.cast(n.b.cast(n[0], n.b.getI32Type()), to.type) : result, to);
  return n.yieldAs(result, to.isUnsigned, to.lowBits);
}

LogicalResult cast(Node &n) {
  ElementType to = n.elementType(n.getInt("to", 0));
  return to.type ? castTo(n, to)
                 : n.refuse("casts to ONNX element type " + Twine(n.getInt("to", 0)) + " are not supported");
}

LogicalResult castLike(Node &n) { return castTo(n, n.typeOf(1)); }

/// The same bits under another type of the same width.
LogicalResult bitCast(Node &n) {
  int64_t wanted = n.getInt("to", 0);
  ElementType from = n.typeOf(0), to = n.elementType(wanted);
  auto bits = [](const ElementType &type) { return type.type.isInteger(1) ? 8u : type.width(); };
  bool toBool = to.type && to.type.isInteger(1) && !from.type.isInteger(1); // other bytes than 0 and 1
  if (!to.type || toBool)
    return n.refuse("bits as ONNX element type " + Twine(wanted) + " are not supported");
  if (bits(from) != bits(to))
    return n.refuse("elements of " + Twine(bits(from)) + " bits cannot be read as elements of " +
                    Twine(bits(to)) + " (floating point has 64 under --precision f64)");
  Value x = n[0];
  if (from.lowBits && to.isUnsigned != from.isUnsigned)
    x = wrapToLowBits(n.b, x, to);
  else if (from.type.isInteger(1))
    x = n.b.cast(x, to.type);
  else if (from.type != to.type)
    x = arith::BitcastOp::create(n.b, TensorBuilder::typeOf(x).clone(to.type), x);
  return n.yieldAs(x, to.isUnsigned, to.lowBits);
}

} // namespace ortc::legalize::handlers
