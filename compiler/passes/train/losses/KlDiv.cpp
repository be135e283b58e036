// The loss kl_div: torch.nn.KLDivLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kLogTarget = "log_target";

/// y log y - y x, where 0 log 0 is 0; with log_target exp(y) (y - x).
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  Value x = operands.prediction, y = operands.label, each;
  if (operands.settings.isOn(kLogTarget)) {
    each = b.mul(b.exp(y), b.sub(y, x));
  } else {
    Value isZero = b.compare(arith::CmpFPredicate::OEQ, y, b.zerosLike(y));
    Value entropy = b.mul(y, b.log(b.select(isZero, b.constantLike(y, 1), y)));
    each = b.sub(entropy, b.mul(y, x));
  }
  return reduceTerms(operands, {each});
}

const LossDefinition kKlDivLoss = {
    .name = "kl_div",
    .meaning = "the divergence of logarithms of probabilities from probabilities",
    .keys = {{kLogTarget, false, kSwitch, "labels are logarithms of probabilities"},
             {kReduction,
              "batchmean",
              kWord,
              "the sum of terms over the size of the leading axis, their mean, or their sum",
              false,
              {"batchmean", "mean", "sum"}}},
    .misfits = {{"Softmax", "kl_div takes logarithms of probabilities", "cross_entropy:probabilities=1"}},
    .build = build};

} // namespace ortc::train
