// The optimizer adadelta: torch.optim.Adadelta.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kRho = "rho", *kEpsilon = "epsilon", *kSquare = "square_avg",
                            *kDelta = "acc_delta";

static const char *movesAlways(const Settings &) { return "the average of squares"; }

/// g += weight_decay p; v = rho v + (1 - rho) g g; d = sqrt(u + epsilon) / sqrt(v + epsilon) g;
/// u = rho u + (1 - rho) d d; p -= lr d.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value rho = step.scalar(kRho), rest = oneMinus(b, rho);
  auto average = [&](Value old, Value value) {
    return b.add(step.scale(old, rho), b.mul(step.scale(value, rest), value));
  };
  Value &v = step.states[kSquare], &u = step.states[kDelta];
  v = average(v, step.gradient);
  Value epsilon = spread(b, step.scalar(kEpsilon), v);
  Value delta = b.mul(b.div(b.sqrt(b.add(u, epsilon)), b.sqrt(b.add(v, epsilon))), step.gradient);
  u = average(u, delta);
  step.parameter = b.add(step.parameter, step.scale(delta, b.neg(step.scalar(kLr))));
}

const OptimizerDefinition kAdadeltaOptimizer = {
    .name = "adadelta",
    .meaning = "gradients times the ratio of averages, of squared steps and of squared gradients",
    .keys = {lrKey(1), betaKey(kRho, 0.9, "factor of both averages"),
             epsilonKey(1e-6, "added below both roots"), gradientDecayKey(), maximizeKey()},
    .states = {{kSquare}, {kDelta}},
    .update = update,
    .movesAlways = movesAlways};

} // namespace ortc::train
