// The loss gaussian_nll: torch.nn.GaussianNLLLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr const char *kFull = "full", *kEps = "eps";

/// As PyTorch: variances are one for each number, or one for the last axis, which may be left out, or for any other.
static bool fits(ArrayRef<ArrayRef<int64_t>> shapes) {
  ArrayRef<int64_t> mean = shapes[0], variance = shapes[1];
  if (mean == variance || (!mean.empty() && mean.drop_back() == variance))
    return true;
  int64_t sum = 0;
  for (auto [a, b] : llvm::zip(mean, variance))
    sum += a == b ? 0 : b;
  return mean.size() == variance.size() && sum == 1;
}

/// (log v + (x - y)^2 / v) / 2 with v = max(variance, eps), whose gradient is that of the variance; `full` adds
/// log(2 pi) / 2.
static Value build(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  Value x = operands.predictions[0], given = operands.predictions[1];
  SmallVector<int64_t> shape(TensorBuilder::shapeOf(given));
  if (shape.size() < TensorBuilder::shapeOf(x).size())
    shape.push_back(1);
  given = b.reshape(given, shape);
  Value least = b.maximum(given, b.constantLike(given, operands.settings.getNumber(kEps)));
  Value narrow = b.add(b.detach(least), b.sub(given, b.detach(given)));
  Value variance = b.broadcastTo(narrow, TensorBuilder::shapeOf(x));
  Value difference = b.sub(x, operands.label);
  Value each = b.mulScalar(b.add(b.log(variance), b.div(b.mul(difference, difference), variance)), 0.5);
  if (operands.settings.isOn(kFull))
    each = b.addScalar(each, 0.5 * std::log(2 * std::numbers::pi));
  return reduceTerms(operands, {each});
}

const LossDefinition kGaussianNllLoss = {
    .name = "gaussian_nll",
    .meaning = "the negative logarithm of the likelihood of labels, where outputs are means and variances",
    .predictions = {"INPUT", "VAR"},
    .keys = {{kFull, false, kSwitch, "adds the constant log(2 pi) / 2"},
             {kEps, 1e-6, kPositive, "the smallest variance"}},
    .fits = fits,
    .build = build,
    .comparands = Comparands::Values};

} // namespace ortc::train
