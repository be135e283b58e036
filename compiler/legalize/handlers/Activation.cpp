// Activations, softmax and its kin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "dialects/onnx/InitializerOrigin.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::legalize::handlers {

using FloatPredicate = arith::CmpFPredicate;

LogicalResult relu(Node &n) { return n.yield(legalize::relu(n.b, n[0])); }
LogicalResult sigmoid(Node &n) { return n.yield(legalize::sigmoid(n.b, n[0])); }
LogicalResult tanh(Node &n) { return n.yield(n.b.tanh(n[0])); }
LogicalResult softplus(Node &n) { return n.yield(legalize::softplus(n.b, n[0])); }
LogicalResult softsign(Node &n) { return n.yield(legalize::softsign(n.b, n[0])); }
LogicalResult mish(Node &n) { return n.yield(n.b.mul(n[0], n.b.tanh(legalize::softplus(n.b, n[0])))); }
LogicalResult swish(Node &n) { return n.yield(legalize::swish(n.b, n[0], n.getFloat("alpha", 1))); }

LogicalResult gelu(Node &n) {
  return n.yield(legalize::gelu(n.b, n[0], n.getString("approximate", "none") == "tanh"));
}

LogicalResult hardSwish(Node &n) { // the corners at exactly -3 and 3: rounding must not move them
  TensorBuilder &b = n.b;
  Value x = n[0], line = clip(b, b.addScalar(x, 3), b.zerosLike(x), b.constantLike(x, 6));
  return n.yield(b.mul(x, b.mulScalar(line, 1.0 / 6)));
}

LogicalResult hardSigmoid(Node &n) {
  return n.yield(legalize::hardSigmoid(n.b, n[0], n.getFloat("alpha", 0.2f), n.getFloat("beta", 0.5f)));
}

LogicalResult leakyRelu(Node &n) {
  return n.yield(legalize::leakyRelu(n.b, n[0], n.getFloat("alpha", 0.01f)));
}

LogicalResult elu(Node &n) { return n.yield(legalize::elu(n.b, n[0], n.getFloat("alpha", 1))); }

LogicalResult celu(Node &n) {
  TensorBuilder &b = n.b;
  Value x = n[0];
  double alpha = n.getFloat("alpha", 1);
  if (alpha == 0)
    return n.refuse("an alpha of 0");
  Value negative = b.createOrFold<math::ExpM1Op>(negativePart(b, b.mulScalar(x, 1 / alpha)));
  return n.yield(positiveOr(b, x, b.mulScalar(negative, alpha)));
}

LogicalResult selu(Node &n) {
  Value x = legalize::elu(n.b, n[0], n.getFloat("alpha", 1.67326319217681884765625f));
  return n.yield(n.b.mulScalar(x, n.getFloat("gamma", 1.05070102214813232421875f)));
}

LogicalResult thresholdedRelu(Node &n) {
  return n.yield(legalize::thresholdedRelu(n.b, n[0], n.getFloat("alpha", 1)));
}

LogicalResult shrink(Node &n) {
  TensorBuilder &b = n.b;
  Value x = n[0];
  double bias = n.getFloat("bias", 0), lambd = n.getFloat("lambd", 0.5f);
  Value below = b.compare(FloatPredicate::OLT, x, b.constantLike(x, -lambd));
  Value above = b.compare(FloatPredicate::OGT, x, b.constantLike(x, lambd));
  return n.yield(
      b.select(below, b.addScalar(x, bias), b.select(above, b.addScalar(x, -bias), b.zerosLike(x))));
}

LogicalResult pRelu(Node &n) {
  Value slope = n[1];
  Ints shape = n.shape(0);
  // Unidirectional broadcasting; a slope of rank 1 and C elements belongs to the channels in old exports.
  if (n.rank(1) > n.rank(0))
    return n.refuse("its slope has more dimensions than its input");
  Value pair[2] = {n[0], slope};
  if (failed(n.broadcast(pair)))
    return failure();
  if (TensorBuilder::shapeOf(pair[1]) != shape)
    return n.refuse("its slope of shape " + shapeText(n.shape(1)) + " does not broadcast to " +
                    shapeText(shape));
  // The slope of an infinite x above 0 is left out.
  Value isPositive = n.b.compare(FloatPredicate::OGT, n[0], n.b.zerosLike(n[0]));
  return n.yield(choose(n.b, isPositive, n[0], n.b.mul(n[0], pair[1])));
}

/// `apply` along the axis. Before opset 13 the input is a matrix: the axes before `axis` against the rest.
template <typename Apply> static LogicalResult alongAxis(Node &n, Apply apply) {
  TensorBuilder &b = n.b;
  bool isMatrix = n.version() < 13;
  int64_t rank = n.rank(0), axis = n.getInt("axis", isMatrix ? 1 : -1);
  if (!isMatrix || axis != rank)
    if (failed(n.axis(axis, rank)))
      return failure();
  Value x = n[0];
  Shape shape(n.shape(0));
  bool flatten = isMatrix && axis != rank - 1;
  if (flatten) {
    x = b.reshape(x,
                  {elementCount(Ints(shape).take_front(axis)), elementCount(Ints(shape).drop_front(axis))});
    axis = 1;
  }
  Value y = apply(b, x, axis);
  return n.yield(flatten ? b.reshape(y, shape) : y);
}

LogicalResult softmax(Node &n) {
  return alongAxis(n, [&](TensorBuilder &b, Value x, int64_t axis) {
    Value y = b.softmax(x, axis);
    return n.op->hasAttr(onnx::kMaskedAttention)
               ? choose(b, b.compare(FloatPredicate::UNO, y, y), b.zerosLike(y), y)
               : y;
  });
}

LogicalResult logSoftmax(Node &n) {
  return alongAxis(n, [](TensorBuilder &b, Value x, int64_t axis) { return b.logSoftmax(x, axis); });
}

LogicalResult hardmax(Node &n) {
  return alongAxis(n, [](TensorBuilder &b, Value x, int64_t axis) {
    auto type = RankedTensorType::get(nn::dropAxes(TensorBuilder::shapeOf(x), {axis}), b.getI64Type());
    Value best = nn::ArgReduceOp::create(b, type, nn::ReduceKind::max, x, axis, false);
    auto wide = RankedTensorType::get(TensorBuilder::shapeOf(x), b.getI64Type());
    Value hit = b.compare(arith::CmpIPredicate::eq, b.iota(wide, axis),
                          b.broadcastAlong(best, wide.getShape(), {axis}));
    return b.cast(hit, TensorBuilder::elementOf(x));
  });
}

} // namespace ortc::legalize::handlers
