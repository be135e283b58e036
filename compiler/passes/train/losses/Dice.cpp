// The loss dice: soft Dice of Milletari et al. (V-Net), with the smoothing of monai.losses.DiceLoss(sigmoid=True).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/losses/Branches.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kSmooth = "smooth";

static const char *misshape(const Settings &, RankedTensorType prediction) {
  return prediction.getRank() < 2 ? "it needs [samples, values] or [samples, channels, places...]" : nullptr;
}

/// 1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth), p = sigmoid(x), is a term: of a sample and channel where
/// there are axes behind both, else of a sample.
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  const double smooth = operands.settings.getNumber(kSmooth);
  Value p = sigmoid(b, operands.prediction), y = operands.label;
  SmallVector<int64_t> axes;
  const int64_t rank = nn::TensorBuilder::rankOf(p);
  for (int64_t axis = rank > 2 ? 2 : 1; axis < rank; ++axis)
    axes.push_back(axis);
  Value both = b.sum(b.mul(p, y), axes), all = b.add(b.sum(p, axes), b.sum(y, axes));
  Value overlap = b.div(b.addScalar(b.mulScalar(both, 2), smooth), b.addScalar(all, smooth));
  return reduceTerms(operands, {b.addScalar(b.neg(overlap), 1)});
}

const LossDefinition kDiceLoss = {
    .name = "dice",
    .meaning = "1 - (2 sum(p y) + smooth) / (sum(p) + sum(y) + smooth) with the sigmoids p of logits and "
               "labels y of 0 and "
               "1, for each sample and channel",
    .keys = {{kSmooth, 1e-5, kNotNegative, "added above and below, for channels without labels"}},
    .misfits = {{"Sigmoid", "dice applies a sigmoid itself", nullptr}},
    .build = build,
    .misshape = misshape,
    .comparands = Comparands::Decisions};

} // namespace ortc::train
