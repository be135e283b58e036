// The optimizer sgd: torch.optim.SGD.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Momentum.h"

using namespace mlir;

namespace ortc::train {

/// g += weight_decay p; p -= lr times the direction of momentum.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  step.decayGradient();
  Value direction = directionOf(step);
  step.parameter = b.add(step.parameter, step.scale(direction, b.neg(step.scalar(kLr))));
}

static std::vector<Key> keys() {
  std::vector<Key> all = directionKeys(1e-3);
  all.push_back(maximizeKey());
  return all;
}

const OptimizerDefinition kSgdOptimizer = {.name = "sgd",
                                           .meaning = "gradient descent, with momentum where it is not 0",
                                           .keys = keys(),
                                           .contradict = contradictDirection,
                                           .shared = directionShared(),
                                           .states = directionStates(),
                                           .update = update,
                                           .movesAlways = directionMovesAlways};

} // namespace ortc::train
