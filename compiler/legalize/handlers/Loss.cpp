// Losses that a graph computes itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Node.h"
#include "dialects/onnx/InitializerOrigin.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize::handlers {

// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: minus the log-probability of each label, times its
// weight; `mean` divides by the sum of the weights of the labels that count.
LogicalResult labelLoss(Node &n) {
  TensorBuilder &b = n.b;
  bool isNll = n.op.getOpType() == "NegativeLogLikelihoodLoss";
  if (failed(n.sameElements({0, 2})))
    return failure();
  if (!n.isFloat(0) || n.isFloat(1) || n.element(1).getIntOrFloatBitWidth() < 32)
    return n.refuse("its scores are not floating-point, or its labels neither i32 nor i64");
  Ints x = n.shape(0);
  if (x.size() < 2 || nn::dropAxes(x, {1}) != Shape(n.shape(1)))
    return n.refuse("scores of shape " + shapeText(x) + " and labels of shape " + shapeText(n.shape(1)) +
                    " do not fit");
  int64_t classes = x[1];
  Value logs = isNll ? n[0] : b.logSoftmax(n[0], 1), labels = n[1];
  IntegerAttr ignore =
      n.hasAttribute("ignore_index") ? b.getI64IntegerAttr(n.getInt("ignore_index", 0)) : IntegerAttr();
  labels = nn::CheckIndexOp::create(b, labels.getType(), labels, n.name(1), 0, classes, ignore);
  Value counts;
  if (ignore) {
    counts = b.differsFrom(labels, ignore.getInt());
    labels = b.select(counts, labels, b.zerosLike(labels));
  }
  Shape kept(x);
  kept[1] = 1;
  Value picked = nn::GatherElementsOp::create(b, RankedTensorType::get(kept, n.element(0)), logs,
                                              b.reshape(labels, kept), 1);
  Value loss = b.neg(b.reshape(picked, n.shape(1))), weights = b.constantLike(loss, 1);
  if (n.has(2)) {
    if (n.shape(2) != Ints({classes}))
      return n.refuse("weights of shape " + shapeText(n.shape(2)) + " for " +
                      formatCount(classes, "class", "classes"));
    weights = nn::GatherOp::create(b, cast<RankedTensorType>(loss.getType()), n[2], labels, 0);
  }
  if (counts)
    weights = b.select(counts, weights, b.zerosLike(weights));
  if (n.has(2))
    loss = b.mul(loss, weights);
  if (auto smoothing = n.op->getAttrOfType<FloatAttr>(onnx::kLabelSmoothing)) {
    SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(0)));
    others.erase(others.begin() + 1);
    Value spread = n.has(2) ? b.mul(logs, b.broadcastAlong(n[2], x, others)) : logs;
    double share = smoothing.getValueAsDouble();
    loss = b.add(b.mulScalar(loss, 1 - share),
                 b.mulScalar(b.sum(spread, {1}), -share / static_cast<double>(classes)));
  }
  if (counts) // also where the class read instead has probability 0
    loss = b.select(counts, loss, b.zerosLike(loss));
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(1)));
  StringRef reduction = n.getString("reduction", "mean");
  if (reduction == "sum")
    loss = b.sum(loss, all);
  else if (reduction == "mean")
    loss = b.div(b.sum(loss, all), b.sum(weights, all));
  else if (reduction != "none")
    return n.refuse("reduction '" + reduction + "' is not supported");
  Value results[2] = {loss, logs};
  return n.yield(results);
}

} // namespace ortc::legalize::handlers
