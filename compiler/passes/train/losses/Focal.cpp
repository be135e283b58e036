// The loss focal: torchvision.ops.sigmoid_focal_loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kAlpha = "alpha", *kGamma = "gamma";

/// (1 - p_t)^gamma times the binary cross entropy, p_t = p y + (1 - p) (1 - y) with p = sigmoid(x); with an alpha of 0
/// or more times alpha y + (1 - alpha) (1 - y).
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  const double alpha = operands.settings.getNumber(kAlpha), gamma = operands.settings.getNumber(kGamma);
  Value x = operands.prediction, y = operands.label;
  Value each = binaryCrossEntropy(b, x, y), other = b.addScalar(b.neg(y), 1);
  if (gamma > 0) {
    // 1 - p_t without a difference: where p_t is near 1, all digits stay.
    Value miss = b.add(b.mul(sigmoid(b, x), other), b.mul(sigmoid(b, b.neg(x)), y));
    if (gamma == 2) {
      each = b.mul(each, b.mul(miss, miss));
    } else {
      Value isZero = b.compare(arith::CmpFPredicate::OEQ, miss, b.zerosLike(miss));
      Value safe = b.select(isZero, b.constantLike(miss, 1), miss);
      Value factor = b.exp(b.mulScalar(b.log(safe), gamma));
      each = b.mul(each, b.select(isZero, b.zerosLike(miss), factor));
    }
  }
  if (alpha >= 0)
    each = b.mul(each, b.add(b.mulScalar(y, alpha), b.mulScalar(other, 1 - alpha)));
  return reduceTerms(operands, {each});
}

const LossDefinition kFocalLoss = {
    .name = "focal",
    .meaning = "binary cross entropies of logits and labels of 0 and 1, times (1 - p)^gamma of the label's "
               "probability p",
    .keys = {{kAlpha, 0.25, kNumber, "factor of labels 1, 1 - alpha that of labels 0; below 0: neither"},
             {kGamma, 2.0, kNotNegative, "the power; 0: cross entropies as they are"}},
    .misfits = {{"Sigmoid", "focal applies a sigmoid itself", nullptr}},
    .build = build,
    .comparands = Comparands::Decisions};

} // namespace ortc::train
