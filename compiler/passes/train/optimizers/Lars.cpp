// The optimizer lars (arXiv:1708.03888): timm.optim.Lars.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Momentum.h"
#include "compiler/passes/train/optimizers/TrustRatio.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kEpsilon = "epsilon", *kCoefficient = "trust_coeff";

/// g = trust_coeff |p| / (|g| + weight_decay |p| + epsilon) (g + weight_decay p), then the step of sgd. Where there is
/// no weight decay, the factor is 1 unless always_adapt is on.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  Value lr = step.scalar(kLr);
  if (adapts(step)) {
    Value ofParameter = normOf(b, step.parameter), ofGradient = normOf(b, step.gradient), sum = ofGradient;
    if (Value decay = step.scalar(kWeightDecay))
      sum = b.add(sum, b.mul(ofParameter, decay));
    Value ratio = b.div(b.mul(step.scalar(kCoefficient), ofParameter), b.add(sum, step.scalar(kEpsilon)));
    ratio = guardRatio(b, ratio, ofParameter, ofGradient);
    if (isClipped(step.settings))
      ratio = b.minimum(b.div(ratio, lr), b.constantLike(ratio, 1));
    step.decayGradient();
    step.gradient = step.scale(step.gradient, ratio);
  }
  step.parameter = b.add(step.parameter, step.scale(directionOf(step), b.neg(lr)));
}

static std::vector<Key> keys() {
  std::vector<Key> all = directionKeys(1);
  all.insert(all.end(),
             {{kCoefficient, 1e-3, kNotNegative, "the size of a step, as a share of the parameter's"},
              epsilonKey(1e-8, "added to the norms"),
              trustClipKey(),
              alwaysAdaptKey(),
              maximizeKey()});
  return all;
}

const OptimizerDefinition kLarsOptimizer = {.name = "lars",
                                            .meaning = "sgd with gradients of the size of their parameters",
                                            .keys = keys(),
                                            .contradict = contradictDirection,
                                            .shared = directionShared(),
                                            .states = directionStates(),
                                            .update = update,
                                            .movesAlways = directionMovesAlways,
                                            .spans = "the norm of the parameter"};

} // namespace ortc::train
