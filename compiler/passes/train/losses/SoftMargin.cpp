// The loss soft_margin: torch.nn.SoftMarginLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

using namespace mlir;

namespace ortc::train {

static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  return reduceTerms(operands, {softplus(b, b.neg(b.mul(operands.label, operands.prediction)))});
}

const LossDefinition kSoftMarginLoss = {.name = "soft_margin",
                                        .meaning = "log(1 + exp(-y x)) for labels y of 1 and -1",
                                        .build = build,
                                        .comparands = Comparands::Decisions};

} // namespace ortc::train
