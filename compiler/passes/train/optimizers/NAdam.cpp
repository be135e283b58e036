// The optimizer nadam: torch.optim.NAdam.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kMomentumDecay = "momentum_decay", *kProduct = "mu_product";

/// mu = beta1 (1 - 0.96^(t momentum_decay) / 2), `later` steps from now.
static Value momentumOf(ScalarStep &step, double later) {
  nn::TensorBuilder &b = step.b;
  Value t = b.addScalar(step.scalar(kUpdates), later);
  Value half = b.mulScalar(power(b, 0.96, b.mul(t, step.scalar(kMomentumDecay))), 0.5);
  return b.mul(step.scalar(kBeta1), oneMinus(b, half));
}

static Value advanceProduct(ScalarStep &step, const SharedState &, Value old) {
  return step.b.mul(old, momentumOf(step, 0));
}

/// With m and v of adam and P the product of all mu so far:
/// p -= lr ((1 - mu) / (1 - P) g + mu' / (1 - P mu') m) / (sqrt(v / correction2) + epsilon), mu' that of the next step.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  decayAsSwitched(step);
  averageMoments(step);
  Value product = step.scalar(kProduct), mu = momentumOf(step, 0), next = momentumOf(step, 1);
  Value rate = b.neg(step.scalar(kLr));
  Value ofGradient = b.div(b.mul(rate, oneMinus(b, mu)), oneMinus(b, product));
  Value ofAverage = b.div(b.mul(rate, next), oneMinus(b, b.mul(product, next)));
  Value direction =
      b.add(step.scale(step.gradient, ofGradient), step.scale(step.states[kAverage], ofAverage));
  step.parameter =
      b.add(step.parameter, b.div(direction, correctedDivisor(step, step.states[kAverageSquare])));
}

const OptimizerDefinition kNAdamOptimizer = {
    .name = "nadam",
    .meaning = "adam with a momentum that looks ahead",
    .keys = momentKeys(2e-3, epsilonKey(), gradientDecayKey(),
                       {{kMomentumDecay, 4e-3, kNotNegative, "how fast the momentum grows to beta1"},
                        switchKey(kDecoupled, "weight decay is a share of the parameter, times lr"),
                        maximizeKey()}),
    .shared = {countState(),
               {.name = kProduct,
                .keys = {kBeta1, kMomentumDecay},
                .advance = advanceProduct,
                .initial = 1,
                .isAdvancedByUpdates = true},
               correctionState(kCorrection2, kBeta2)},
    .states = momentStates(),
    .update = update,
    .movesAlways = momentsMoveAlways};

} // namespace ortc::train
