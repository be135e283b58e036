// Functions that several handlers are made of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"

#include "dialects/nn/Choices.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::legalize {

using nn::Shape;
using nn::TensorBuilder;
using Ints = ArrayRef<int64_t>;
using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

static bool isFloat(Value value) { return isa<FloatType>(TensorBuilder::elementOf(value)); }

static Value isPositive(TensorBuilder &b, Value x) {
  return b.compare(FloatPredicate::OGT, x, b.zerosLike(x));
}

Value choose(TensorBuilder &b, Value condition, Value a, Value c) {
  // A condition turned round would be turned back by canonicalisation, in an operation without the mark.
  Value inner;
  if (matchPattern(condition, m_Op<arith::XOrIOp>(matchers::m_Any(&inner), m_One()))) {
    condition = inner;
    std::swap(a, c);
  }
  Value chosen = b.select(condition, a, c);
  auto select = chosen.getDefiningOp<arith::SelectOp>();
  if (select && llvm::equal(select->getOperands(), ArrayRef<Value>{condition, a, c}))
    nn::markChoice(select);
  return chosen;
}

Value relu(TensorBuilder &b, Value x) {
  Value zero = b.zerosLike(x);
  if (!isFloat(x))
    return b.select(b.compare(IntPredicate::sgt, x, zero), x, zero);
  return b.select(b.compare(FloatPredicate::UGT, x, zero), x, zero);
}

Value negativePart(TensorBuilder &b, Value x) { return b.select(isPositive(b, x), b.zerosLike(x), x); }

Value withSlope(TensorBuilder &b, Value x, Value y, Value slope) {
  return nn::StraightThroughOp::create(b, y, b.mul(x, b.detach(slope)));
}

// e = exp(-|x|) never overflows; y = 1 / (1 + e) or e / (1 + e). The derivative is y (1 - y): that of the
// formula needs five of its values.
Value sigmoid(TensorBuilder &b, Value x) {
  Value positive = isPositive(b, x);
  Value e = b.exp(b.select(positive, b.neg(x), x)), one = b.constantLike(x, 1);
  Value y = b.div(b.select(positive, one, e), b.add(one, e));
  return withSlope(b, x, y, b.mul(y, b.sub(one, y)));
}

Value findSigmoid(Value y) {
  auto through = y.getDefiningOp<nn::StraightThroughOp>();
  auto scaled = through ? through.getThrough().getDefiningOp<arith::MulFOp>() : nullptr;
  auto slope = scaled ? scaled.getRhs().getDefiningOp<nn::DetachOp>() : nullptr;
  auto product = slope ? slope.getInput().getDefiningOp<arith::MulFOp>() : nullptr;
  auto rest = product ? product.getRhs().getDefiningOp<arith::SubFOp>() : nullptr;
  bool isSigmoid = rest && product.getLhs() == through.getValue() && rest.getRhs() == through.getValue() &&
                   matchPattern(rest.getLhs(), m_OneFloat());
  return isSigmoid ? scaled.getLhs() : Value();
}

// max(x, 0) + log1p(exp(-|x|)), with |x| written so that the gradient at 0 is one half.
Value softplus(TensorBuilder &b, Value x) {
  Value positive = isPositive(b, x);
  Value e = b.exp(b.select(positive, b.neg(x), x));
  return b.add(b.select(positive, x, b.zerosLike(x)), b.createOrFold<math::Log1pOp>(e));
}

Value softsign(TensorBuilder &b, Value x) { return b.div(x, b.addScalar(b.abs(x), 1)); }

Value positiveOr(TensorBuilder &b, Value x, Value negative) {
  return b.select(isPositive(b, x), x, negative);
}

Value leakyRelu(TensorBuilder &b, Value x, double alpha) { return positiveOr(b, x, b.mulScalar(x, alpha)); }

Value elu(TensorBuilder &b, Value x, double alpha) {
  return positiveOr(b, x, b.mulScalar(b.createOrFold<math::ExpM1Op>(negativePart(b, x)), alpha));
}

Value thresholdedRelu(TensorBuilder &b, Value x, double alpha) {
  return b.select(b.compare(FloatPredicate::OGT, x, b.constantLike(x, alpha)), x, b.zerosLike(x));
}

Value hardSigmoid(TensorBuilder &b, Value x, double alpha, double beta) {
  return clip(b, b.addScalar(b.mulScalar(x, alpha), beta), b.zerosLike(x), b.constantLike(x, 1));
}

Value clip(TensorBuilder &b, Value x, Value low, Value high, bool isUnsigned) {
  auto keep = [&](Value bound, bool above) {
    if (isFloat(x))
      x = b.select(b.compare(above ? FloatPredicate::UGT : FloatPredicate::ULT, x, bound), x, bound);
    else if (isUnsigned)
      x = b.select(b.compare(above ? IntPredicate::ugt : IntPredicate::ult, x, bound), x, bound);
    else
      x = b.select(b.compare(above ? IntPredicate::sgt : IntPredicate::slt, x, bound), x, bound);
  };
  if (low)
    keep(low, true);
  if (high)
    keep(high, false);
  return x;
}

Value rootOrZero(TensorBuilder &b, Value x) {
  Value isZero = b.compare(FloatPredicate::OEQ, x, b.zerosLike(x));
  return b.select(isZero, b.zerosLike(x), b.sqrt(b.select(isZero, b.constantLike(x, 1), x)));
}

/// x to a power of at least a half that is a multiple of it, by multiplication.
static Value multiplied(TensorBuilder &b, Value x, double exponent) {
  int64_t whole = static_cast<int64_t>(exponent);
  Value result = exponent == static_cast<double>(whole) ? Value() : b.sqrt(x);
  for (Value square = x; whole; whole >>= 1) {
    if (whole & 1)
      result = result ? b.mul(result, square) : square;
    if (whole > 1)
      square = b.mul(square, square);
  }
  return result;
}

// The derivative of sqrt(x) x at 0 is infinity times 0, that of 1 / (x x) zero times infinity: where the factors have
// another derivative than the power, its own goes with it.
Value power(TensorBuilder &b, Value x, double exponent) {
  if (!isFloat(x) || std::fabs(exponent) > 8 || std::floor(2 * exponent) != 2 * exponent)
    return {};
  if (exponent == 0)
    return b.constantLike(x, 1);
  bool isWhole = std::floor(exponent) == exponent;
  bool hasOwnSlope = exponent < -1 || (exponent > 1 && !isWhole);
  Value base = x;
  if (hasOwnSlope && !isWhole) { // for which powf takes -0 and minus infinity without their signs
    double infinity = std::numeric_limits<double>::infinity();
    Value isLowest = b.compare(FloatPredicate::OEQ, x, b.constantLike(x, -infinity));
    base = b.select(isLowest, b.constantLike(x, infinity), b.addScalar(x, 0));
  }
  Value y = multiplied(b, base, std::fabs(exponent));
  if (exponent < 0)
    y = b.div(b.constantLike(x, 1), y);
  if (!hasOwnSlope)
    return y;
  Value slope = exponent < 0 ? b.div(y, base) : multiplied(b, base, exponent - 1);
  return withSlope(b, x, y, b.mulScalar(slope, exponent));
}

Value extremum(TensorBuilder &b, Value a, Value c, bool larger, bool isUnsigned) {
  if (!isFloat(a)) {
    IntPredicate predicate = isUnsigned ? (larger ? IntPredicate::ugt : IntPredicate::ult)
                                        : (larger ? IntPredicate::sgt : IntPredicate::slt);
    return b.select(b.compare(predicate, a, c), a, c);
  }
  Value first = b.compare(larger ? FloatPredicate::OGT : FloatPredicate::OLT, a, c);
  Value second = b.compare(larger ? FloatPredicate::OLT : FloatPredicate::OGT, a, c);
  Value shared = b.add(b.mulScalar(a, 0.5), b.mulScalar(c, 0.5));
  return choose(b, first, a, choose(b, second, c, shared));
}

Value turnSign(TensorBuilder &b, Value x) {
  auto type = TensorBuilder::typeOf(x);
  Attribute top =
      b.getIntegerAttr(type.getElementType(), APInt::getSignedMinValue(type.getElementTypeBitWidth()));
  return b.createOrFold<arith::XOrIOp>(x, arith::ConstantOp::create(b, DenseElementsAttr::get(type, top)));
}

Value sign(TensorBuilder &b, Value x) {
  Value zero = b.zerosLike(x), one = b.constantLike(x, 1), minus = b.constantLike(x, -1);
  if (!isFloat(x))
    return b.select(b.compare(IntPredicate::sgt, x, zero), one,
                    b.select(b.compare(IntPredicate::slt, x, zero), minus, zero));
  return b.select(isPositive(b, x), one, b.select(b.compare(FloatPredicate::OLT, x, zero), minus, zero));
}

Value swish(TensorBuilder &b, Value x, double alpha) {
  return b.mul(x, sigmoid(b, alpha == 1 ? x : b.mulScalar(x, alpha)));
}

Value gelu(TensorBuilder &b, Value x, bool tanhApproximation) {
  Value inner;
  if (tanhApproximation) {
    Value cubic = b.mulScalar(b.mul(b.mul(x, x), x), 0.044715);
    inner = b.tanh(b.mulScalar(b.add(x, cubic), std::sqrt(2 / M_PI)));
  } else {
    inner = b.erf(b.mulScalar(x, std::sqrt(0.5)));
  }
  return b.mul(b.mulScalar(x, 0.5), b.addScalar(inner, 1));
}

/// Puts reduced `axes` of x back with size 1.
static Value keepAxes(TensorBuilder &b, Value reduced, Value x, Ints axes) {
  Shape kept(TensorBuilder::shapeOf(x));
  for (int64_t axis : axes)
    kept[axis] = 1;
  return b.reshape(reduced, kept);
}

Value normalize(TensorBuilder &b, Value x, Ints axes, double epsilon, Value *mean, Value *inverse) {
  auto [average, variance] = b.moments(x, axes);
  Value scale = b.rsqrt(b.addScalar(variance, epsilon));
  if (mean)
    *mean = keepAxes(b, average, x, axes);
  if (inverse)
    *inverse = keepAxes(b, scale, x, axes);
  Ints shape = TensorBuilder::shapeOf(x);
  return b.mul(b.sub(x, b.broadcastAlong(average, shape, axes)), b.broadcastAlong(scale, shape, axes));
}

Value normalizeByRoot(TensorBuilder &b, Value x, Ints axes, double epsilon, Value *inverse) {
  Value scale = b.rsqrt(b.addScalar(b.mean(b.mul(x, x), axes), epsilon));
  if (inverse)
    *inverse = keepAxes(b, scale, x, axes);
  return b.mul(x, b.broadcastAlong(scale, TensorBuilder::shapeOf(x), axes));
}

//===----------------------------------------------------------------------===//
// Contraction
//===----------------------------------------------------------------------===//

/// Permutes dimensions labelled `labels` into the order of `result`.
static Value permuteTo(TensorBuilder &b, Value x, StringRef labels, StringRef result) {
  SmallVector<int64_t> permutation;
  for (char label : result)
    permutation.push_back(labels.find(label));
  return b.transpose(x, permutation);
}

/// Drops the dimensions for which `drop` holds: by a reshape when they are all of size 1, else by a sum.
template <typename Predicate>
static Value dropDimensions(TensorBuilder &b, Value x, std::string &labels, Predicate drop) {
  SmallVector<int64_t> axes;
  Shape kept;
  std::string left;
  bool allOnes = true;
  for (int64_t i = 0, rank = TensorBuilder::rankOf(x); i < rank; ++i) {
    int64_t size = TensorBuilder::shapeOf(x)[i];
    if (drop(labels[i], size)) {
      axes.push_back(i);
      allOnes &= size == 1;
    } else {
      left += labels[i];
      kept.push_back(size);
    }
  }
  labels = left;
  return axes.empty() ? x : allOnes ? b.reshape(x, kept) : b.sum(x, axes);
}

Value contract(TensorBuilder &b, Value x, StringRef labels, StringRef result) {
  std::string left = labels.str();
  x = dropDimensions(b, x, left, [&](char label, int64_t) { return !result.contains(label); });
  return permuteTo(b, x, left, result);
}

Value contract(TensorBuilder &b, Value lhs, StringRef lhsLabels, Value rhs, StringRef rhsLabels,
               StringRef result, bool exact) {
  std::string left = lhsLabels.str(), right = rhsLabels.str();
  llvm::StringMap<int64_t> sizes;
  auto sizeOf = [&](char label) -> int64_t & { return sizes[StringRef(&label, 1)]; };
  for (auto [labels, value] : {std::pair(&left, lhs), std::pair(&right, rhs)})
    for (auto [label, size] : llvm::zip_equal(*labels, TensorBuilder::shapeOf(value)))
      sizeOf(label) = std::max(sizeOf(label), size);
  auto simplify = [&](Value value, std::string &labels, const std::string &others) {
    return dropDimensions(b, value, labels, [&](char label, int64_t size) {
      bool isShared = StringRef(others).contains(label);
      return (!isShared && !result.contains(label)) || (isShared && size == 1);
    });
  };
  std::string before = left;
  lhs = simplify(lhs, left, right);
  rhs = simplify(rhs, right, before);
  std::string lonely; // of size 1 on both sides: in neither operand now
  std::string free, freeRight, batch;
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  for (char label : result)
    if (StringRef(left).contains(label) && StringRef(right).contains(label)) {
      batch += label;
      lhsBatch.push_back(left.find(label));
      rhsBatch.push_back(right.find(label));
    } else if (!StringRef(left).contains(label) && !StringRef(right).contains(label)) {
      lonely += label;
    }
  for (char label : left)
    if (StringRef(right).contains(label) && !result.contains(label)) {
      lhsContract.push_back(left.find(label));
      rhsContract.push_back(right.find(label));
    } else if (!StringRef(right).contains(label) && result.contains(label)) {
      free += label;
    }
  // A label that had size 1 on the other side only is summed here when the result has not got it.
  for (char label : right)
    if (!StringRef(left).contains(label) && result.contains(label))
      freeRight += label;
  auto sumRest = [&](Value value, std::string &labels, const std::string &others) {
    return dropDimensions(b, value, labels, [&](char label, int64_t) {
      return !result.contains(label) && !StringRef(others).contains(label);
    });
  };
  std::string leftBefore = left, rightBefore = right;
  lhs = sumRest(lhs, left, rightBefore);
  rhs = sumRest(rhs, right, leftBefore);
  auto positions = [](const std::string &labels, StringRef of) {
    SmallVector<int64_t> found;
    for (char label : of)
      found.push_back(labels.find(label));
    return found;
  };
  std::string contracted;
  for (int64_t position : lhsContract)
    contracted += leftBefore[position];
  Value product = b.dot(lhs, rhs, positions(left, batch), positions(right, batch),
                        positions(left, contracted), positions(right, contracted), exact);
  std::string have = batch + free + freeRight, wanted;
  for (char label : result)
    if (!StringRef(lonely).contains(label))
      wanted += label;
  product = permuteTo(b, product, have, wanted);
  if (lonely.empty())
    return product;
  Shape shape;
  for (char label : result)
    shape.push_back(StringRef(lonely).contains(label) ? 1 : sizeOf(label));
  return b.reshape(product, shape);
}

Value matmul(TensorBuilder &b, Value lhs, Value rhs) {
  int64_t lhsRank = TensorBuilder::rankOf(lhs), rhsRank = TensorBuilder::rankOf(rhs);
  int64_t batches = std::max(std::max(lhsRank, rhsRank) - 2, int64_t(0));
  auto batchLabels = [&](int64_t rank) {
    std::string labels;
    for (int64_t i = batches - std::max(rank - 2, int64_t(0)); i < batches; ++i)
      labels += static_cast<char>('a' + i);
    return labels;
  };
  std::string left = batchLabels(lhsRank) + (lhsRank == 1 ? "k" : "mk");
  std::string right = batchLabels(rhsRank) + (rhsRank == 1 ? "k" : "kn");
  std::string result = batchLabels(batches + 2) + (lhsRank == 1 ? "" : "m") + (rhsRank == 1 ? "" : "n");
  return contract(b, lhs, left, rhs, right, result);
}

} // namespace ortc::legalize
