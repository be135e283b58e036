// The loss hinge: keras.losses.Hinge.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

using namespace mlir;

namespace ortc::train {

/// max(0, 1 - y x). A label 0 means -1.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value y = operands.label;
  Value isZero = b.compare(arith::CmpFPredicate::OEQ, y, b.zerosLike(y));
  y = b.select(isZero, b.constantLike(y, -1), y);
  return reduceTerms(operands, {clampAtZero(b, b.addScalar(b.neg(b.mul(y, operands.prediction)), 1))});
}

const LossDefinition kHingeLoss = {.name = "hinge",
                                   .meaning = "max(0, 1 - y x) for labels y of 1 and -1, or 1 and 0",
                                   .build = build,
                                   .comparands = Comparands::Decisions};

} // namespace ortc::train
