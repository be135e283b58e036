// The optimizer adam: torch.optim.Adam.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

namespace ortc::train {

static void update(UpdateStep &step) {
  step.decayGradient();
  updateByMoments(step);
}

const OptimizerDefinition kAdamOptimizer = {
    .name = "adam",
    .meaning = "steps of a size that averages of gradients and of their squares give",
    .keys =
        momentKeys(1e-3, epsilonKey(), gradientDecayKey(), {amsgradKey(), epsilonHatKey(), maximizeKey()}),
    .shared = momentCorrections(),
    .states = {{kAverage}, {kAverageSquare}, amsgradState()},
    .update = update};

} // namespace ortc::train
