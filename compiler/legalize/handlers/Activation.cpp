// Activations, softmax and its kin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "dialects/onnx/InitializerOrigin.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::legalize::handlers {

using FloatPredicate = arith::CmpFPredicate;

LogicalResult activation(Node &n) {
  TensorBuilder &b = n.b;
  Value x = n[0];
  StringRef op = n.op.getOpType();
  if (op == "Relu")
    return n.yield(relu(b, x));
  if (op == "Sigmoid")
    return n.yield(sigmoid(b, x));
  if (op == "Tanh")
    return n.yield(b.tanh(x));
  if (op == "Softplus")
    return n.yield(softplus(b, x));
  if (op == "Softsign")
    return n.yield(softsign(b, x));
  if (op == "Mish")
    return n.yield(b.mul(x, b.tanh(softplus(b, x))));
  if (op == "Swish")
    return n.yield(swish(b, x, n.getFloat("alpha", 1)));
  if (op == "Gelu")
    return n.yield(gelu(b, x, n.getString("approximate", "none") == "tanh"));
  if (op == "HardSwish") { // the corners at exactly -3 and 3: rounding must not move them
    Value line = clip(b, b.addScalar(x, 3), b.zerosLike(x), b.constantLike(x, 6));
    return n.yield(b.mul(x, b.mulScalar(line, 1.0 / 6)));
  }
  if (op == "HardSigmoid")
    return n.yield(hardSigmoid(b, x, n.getFloat("alpha", 0.2f), n.getFloat("beta", 0.5f)));
  if (op == "LeakyRelu")
    return n.yield(leakyRelu(b, x, n.getFloat("alpha", 0.01f)));
  if (op == "Elu")
    return n.yield(elu(b, x, n.getFloat("alpha", 1)));
  if (op == "Celu") {
    double alpha = n.getFloat("alpha", 1);
    if (alpha == 0)
      return n.refuse("an alpha of 0");
    Value negative = b.createOrFold<math::ExpM1Op>(negativePart(b, b.mulScalar(x, 1 / alpha)));
    return n.yield(positiveOr(b, x, b.mulScalar(negative, alpha)));
  }
  if (op == "Selu")
    return n.yield(b.mulScalar(elu(b, x, n.getFloat("alpha", 1.67326319217681884765625f)),
                               n.getFloat("gamma", 1.05070102214813232421875f)));
  if (op == "ThresholdedRelu")
    return n.yield(thresholdedRelu(b, x, n.getFloat("alpha", 1)));
  assert(op == "Shrink" && "the table lists no other");
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

/// Softmax, LogSoftmax, Hardmax. Before opset 13 the input is a matrix: the axes before `axis` against the
/// rest.
LogicalResult softmax(Node &n) {
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
  StringRef op = n.op.getOpType();
  Value y;
  if (op == "Softmax") {
    y = b.softmax(x, axis);
    if (n.op->hasAttr(onnx::kMaskedAttention))
      y = choose(b, b.compare(arith::CmpFPredicate::UNO, y, y), b.zerosLike(y), y);
  } else if (op == "LogSoftmax") {
    y = b.logSoftmax(x, axis);
  } else {
    auto type = RankedTensorType::get(nn::dropAxes(TensorBuilder::shapeOf(x), {axis}), b.getI64Type());
    Value best = nn::ArgReduceOp::create(b, type, nn::ReduceKind::max, x, axis, false);
    auto wide = RankedTensorType::get(TensorBuilder::shapeOf(x), b.getI64Type());
    Value hit = b.compare(arith::CmpIPredicate::eq, b.iota(wide, axis),
                          b.broadcastAlong(best, wide.getShape(), {axis}));
    y = b.cast(hit, TensorBuilder::elementOf(x));
  }
  return n.yield(flatten ? b.reshape(y, shape) : y);
}

} // namespace ortc::legalize::handlers
