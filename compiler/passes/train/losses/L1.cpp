// The loss l1: torch.nn.L1Loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  return reduceTerms(operands, {b.abs(b.sub(operands.prediction, operands.label))});
}

const LossDefinition kL1Loss = {
    .name = "l1", .meaning = "absolute differences", .build = build, .comparands = Comparands::Values};

} // namespace ortc::train
