// The loss poisson_nll: torch.nn.PoissonNLLLoss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"

#include <cmath>

using namespace mlir;

namespace ortc::train {

static constexpr const char *kLogInput = "log_input", *kFull = "full", *kEps = "eps";

/// log(y!) by Stirling, y log y - y + log(2 pi y) / 2 for y above 1, else 0.
static Value approximateLogFactorial(nn::TensorBuilder &b, Value y) {
  Value one = b.constantLike(y, 1), isAbove = b.compare(arith::CmpFPredicate::OGT, y, one);
  Value safe = b.select(isAbove, y, one), logarithm = b.log(safe);
  Value root = b.mulScalar(b.addScalar(logarithm, std::log(2 * M_PI)), 0.5);
  return b.select(isAbove, b.add(b.sub(b.mul(safe, logarithm), safe), root), b.zerosLike(y));
}

/// exp(x) - y x, or without log_input x - y log(x + eps).
static Value build(const LossOperands &operands) {
  nn::TensorBuilder &b = operands.b;
  Value x = operands.prediction, y = operands.label, each;
  if (operands.settings.isOn(kLogInput))
    each = b.sub(b.exp(x), b.mul(y, x));
  else
    each = b.sub(x, b.mul(y, b.log(b.addScalar(x, operands.settings.getNumber(kEps)))));
  if (operands.settings.isOn(kFull))
    each = b.add(each, approximateLogFactorial(b, y));
  return reduceTerms(operands, {each});
}

const LossDefinition kPoissonNllLoss = {
    .name = "poisson_nll",
    .meaning = "of logarithms of rates, or of rates, and counts, without the constant log(y!)",
    .keys = {{kLogInput, true, kSwitch, "predictions are logarithms of rates"},
             {kFull, false, kSwitch, "with log(y!), by Stirling's formula for counts y above 1"},
             {kEps, 1e-8, kNotNegative, "added to rates before their logarithm, with log_input=0"}},
    .build = build};

} // namespace ortc::train
