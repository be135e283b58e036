// The loss mse: torch.nn.MSELoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value difference = b.sub(operands.prediction, operands.label);
  return reduceTerms(operands, {b.mul(difference, difference)});
}

const LossDefinition kMseLoss = {
    .name = "mse", .meaning = "squared differences", .build = build, .comparands = Comparands::Values};

} // namespace ortc::train
