// The loss nll: torch.nn.NLLLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/ClassIndices.h"

using namespace mlir;

namespace ortc::train {

static Value build(const LossOperands &operands) {
  return reduceOverClasses(operands, operands.prediction, 0);
}

const LossDefinition kNllLoss = {
    .name = "nll",
    .meaning = "of logarithms of probabilities and class indices",
    .label = LabelKind::Classes,
    .keys = {axisKey(), ignoreIndexKey(), classWeightKey()},
    .misfits = {{"Softmax", "nll takes logarithms of probabilities", "cross_entropy"}},
    .build = build};

} // namespace ortc::train
