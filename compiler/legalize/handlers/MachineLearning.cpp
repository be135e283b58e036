// Operators of ai.onnx.ml.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What converters of scikit-learn models write around a network: a scaling before it, a normalisation behind it.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

/// Whatever number type goes in, float goes out.
static Value takeFloats(Node &n) {
  Value x = n[0];
  if (isa<FloatType>(TensorBuilder::elementOf(x)))
    return x;
  return n.b.cast(x, n.options().float64 ? Type(n.b.getF64Type()) : Type(n.b.getF32Type()),
                  n.bound(0).isUnsigned);
}

LogicalResult scaler(Node &n) {
  Value x = takeFloats(n);
  ArrayRef<int64_t> shape = n.shape(0);
  int64_t columns = shape.empty() ? 1 : shape.back();
  auto apply = [&](StringRef name, auto combine) {
    ArrayRef<float> given = n.op.getFloats(name);
    if (given.empty())
      return success();
    auto count = static_cast<int64_t>(given.size());
    if (count != 1 && count != columns)
      return n.refuse("`" + name + "` has " + formatCount(count, "element") + ", an input of shape " +
                      shapeText(shape) + " has " + formatCount(columns, "column"));
    SmallVector<int64_t> sizes;
    if (count > 1)
      sizes.push_back(count);
    Value constant =
        n.floatConstant(SmallVector<double>(given.begin(), given.end()), sizes, TensorBuilder::elementOf(x));
    x = combine(x, n.b.broadcastTo(constant, shape));
    return success();
  };
  if (failed(apply("offset", [&](Value a, Value c) { return n.b.sub(a, c); })) ||
      failed(apply("scale", [&](Value a, Value c) { return n.b.mul(a, c); })))
    return failure();
  return n.yield(x);
}

LogicalResult binarizer(Node &n) {
  TensorBuilder &b = n.b;
  double threshold = n.getFloat("threshold", 0);
  Value limit = b.constantLike(n[0], n.isFloat(0) ? threshold : std::floor(threshold));
  Value isAbove = n.isFloat(0) ? b.compare(arith::CmpFPredicate::OGT, n[0], limit)
                               : b.compare(arith::CmpIPredicate::sgt, n[0], limit);
  return n.yield(b.select(isAbove, b.constantLike(n[0], 1), b.zerosLike(n[0])));
}

/// Columns of the first operand, in the order of the second.
LogicalResult arrayFeatureExtractor(Node &n) {
  Value x = n[0];
  nn::Shape shape(n.shape(0));
  if (shape.empty())
    return n.refuse("its operand is a scalar");
  if (shape.size() == 1) {
    shape.insert(shape.begin(), 1);
    x = n.b.reshape(x, shape);
  }
  int64_t axis = static_cast<int64_t>(shape.size()) - 1, count = elementCount(n.shape(1));
  Value indices = n.index(n.b.reshape(n[1], {count}), shape.back(), n.name(1));
  if (!indices)
    return failure();
  shape.back() = count;
  auto type = RankedTensorType::get(shape, TensorBuilder::elementOf(x));
  return n.yieldBound({n.bound(0).with(nn::GatherOp::create(n.b, type, x, indices, axis).getResult())});
}

LogicalResult normalizer(Node &n) {
  TensorBuilder &b = n.b;
  Value x = takeFloats(n);
  std::string norm = n.getString("norm", "MAX").str();
  if (n.rank(0) < 1)
    return n.refuse("its operand is a scalar");
  int64_t axis = n.rank(0) - 1;
  Value sum = norm == "L1"    ? b.sum(b.abs(x), {axis})
              : norm == "L2"  ? rootOrZero(b, b.sum(b.mul(x, x), {axis}))
              : norm == "MAX" ? b.reduce(nn::ReduceKind::max, x, {axis})
                              : Value();
  if (!sum)
    return n.refuse("norm '" + norm + "'");
  // Rows of zeros stay as they are.
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, sum, b.zerosLike(sum));
  sum = b.select(isZero, b.constantLike(sum, 1), sum);
  return n.yield(b.div(x, b.broadcastAlong(sum, n.shape(0), {axis})));
}

} // namespace ortc::legalize::handlers
