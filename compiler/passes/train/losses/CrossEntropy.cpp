// The loss cross_entropy: torch.nn.CrossEntropyLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/ClassIndices.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kSmoothing = "label_smoothing";

/// -sum(target * logProbability), targets smoothed, of each sample.
static Value reduceOverTargets(const LossOperands &operands, Value logProbability, double smoothing) {
  TensorBuilder &b = operands.b;
  Value target = operands.label;
  const int64_t classes = TensorBuilder::shapeOf(logProbability)[operands.axis];
  if (smoothing > 0)
    target = b.addScalar(b.mulScalar(target, 1 - smoothing), smoothing / static_cast<double>(classes));
  return reduceTerms(
      operands, {.each = weighClasses(operands, b.mul(target, logProbability)), .size = classes, .sign = -1});
}

static Value build(const LossOperands &operands) {
  Value logProbability = operands.b.logSoftmax(operands.prediction, operands.axis);
  double smoothing = operands.settings.getNumber(kSmoothing);
  return operands.settings.isOn(kProbabilities) ? reduceOverTargets(operands, logProbability, smoothing)
                                                : reduceOverClasses(operands, logProbability, smoothing);
}

static const char *contradict(const Settings &settings) {
  bool ignores = KeyValue(settings.getInteger(kIgnoreIndex)) != ignoreIndexKey().initial;
  return settings.isOn(kProbabilities) && ignores
             ? "probabilities have no index to ignore; leave ignore_index or probabilities out"
             : nullptr;
}

const LossDefinition kCrossEntropyLoss = {
    .name = "cross_entropy",
    .meaning = "of logits and class indices, or probabilities",
    .label = LabelKind::Classes,
    .keys = {axisKey(),
             ignoreIndexKey(),
             classWeightKey(),
             {kSmoothing, 0.0, kShare, "share of a label that is spread over all classes"},
             {kProbabilities, false, kSwitch, "labels are probabilities of the logits' shape"}},
    .contradict = contradict,
    .misfits = {{"Softmax", "cross_entropy applies a softmax itself", nullptr},
                {"Sigmoid", "cross_entropy takes logits", "bce_with_logits", /*isBehindConcat=*/true}},
    .build = build};

} // namespace ortc::train
