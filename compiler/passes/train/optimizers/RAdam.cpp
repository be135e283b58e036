// The optimizer radam: torch.optim.RAdam.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

using namespace mlir;

namespace ortc::train {

/// rho = R - 2 t beta2^t / correction2, R = 2 / (1 - beta2) - 1. Above 5: p -= lr r m / correction1 sqrt(correction2) /
/// (sqrt(v) + epsilon), r = sqrt((rho - 4)(rho - 2) R / ((R - 4)(R - 2) rho)). Else p -= lr m / correction1.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  decayAsSwitched(step);
  averageMoments(step);
  Value correction2 = step.scalar(kCorrection2), v = step.states[kAverageSquare];
  Value limit = b.addScalar(b.div(b.constantLike(correction2, 2), oneMinus(b, step.scalar(kBeta2))), -1);
  Value taken = b.div(b.mul(b.mulScalar(step.scalar(kUpdates), 2), oneMinus(b, correction2)), correction2);
  Value rho = b.sub(limit, taken);
  Value isLong = b.compare(arith::CmpFPredicate::OGT, rho, b.constantLike(rho, 5));
  auto shortened = [&](Value x) { return b.mul(b.addScalar(x, -4), b.addScalar(x, -2)); };
  Value ratio = b.div(b.mul(shortened(rho), limit), b.mul(shortened(limit), rho));
  Value rectified = b.sqrt(b.mul(b.select(isLong, ratio, b.zerosLike(ratio)), correction2));
  Value factor = b.div(spread(b, rectified, v), b.add(b.sqrt(v), spread(b, step.scalar(kEpsilon), v)));
  factor = b.select(b.broadcast(isLong, nn::TensorBuilder::shapeOf(v), {}), factor, b.constantLike(v, 1));
  Value rate = b.neg(b.div(step.scalar(kLr), step.scalar(kCorrection1)));
  step.parameter = b.add(step.parameter, b.mul(step.scale(step.states[kAverage], rate), factor));
}

static std::vector<SharedState> shared() {
  std::vector<SharedState> all = momentCorrections();
  all.push_back(countState());
  return all;
}

const OptimizerDefinition kRAdamOptimizer = {
    .name = "radam",
    .meaning = "adam that divides once its average of squares is of enough steps",
    .keys = momentKeys(
        1e-3, epsilonKey(), gradientDecayKey(),
        {switchKey(kDecoupled, "weight decay is a share of the parameter, times lr"), maximizeKey()}),
    .shared = shared(),
    .states = momentStates(),
    .update = update,
    .movesAlways = momentsMoveAlways};

} // namespace ortc::train
