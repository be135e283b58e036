// The loss multilabel_soft_margin: torch.nn.MultiLabelSoftMarginLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/Branches.h"
#include "compiler/passes/train/losses/ClassIndices.h"

using namespace mlir;

namespace ortc::train {

static const char *misshape(const Settings &, RankedTensorType prediction) {
  return prediction.getRank() == 0 ? "it needs an axis of classes" : nullptr;
}

/// The mean over the last axis of binary cross entropies is a term.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value x = operands.prediction;
  Value each = weighClasses(operands, binaryCrossEntropy(b, x, operands.label));
  return reduceTerms(operands, {b.mean(each, {operands.axis})});
}

const LossDefinition kMultilabelSoftMarginLoss = {
    .name = "multilabel_soft_margin",
    .meaning = "binary cross entropies of logits and labels of 0 and 1, their mean over the last axis a term",
    .keys = {classWeightKey()},
    .misfits = {{"Sigmoid", "multilabel_soft_margin applies a sigmoid itself", nullptr}},
    .build = build,
    .misshape = misshape,
    .comparands = Comparands::Decisions};

} // namespace ortc::train
