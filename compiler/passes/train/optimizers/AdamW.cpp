// The optimizer adamw: torch.optim.AdamW.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

namespace ortc::train {

void updateAdamW(UpdateStep &step) {
  step.decayParameter();
  updateByMoments(step);
}

const OptimizerDefinition kAdamWOptimizer = {
    .name = "adamw",
    .meaning = "adam with a weight decay of its own",
    .keys = momentKeys(1e-3, epsilonKey(), ownDecayKey(1e-2), {amsgradKey(), epsilonHatKey(), maximizeKey()}),
    .shared = momentCorrections(),
    .states = {{kAverage}, {kAverageSquare}, amsgradState()},
    .update = updateAdamW};

} // namespace ortc::train
