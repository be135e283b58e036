// The optimizer schedule_free_adamw: AdamWScheduleFree of the package schedulefree (arXiv:2405.15682).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"
#include "compiler/passes/train/optimizers/ScheduleFree.h"

using namespace mlir;

namespace ortc::train {

static Value ahead(UpdateStep &step) { return readAhead(step, kBeta1); }

/// v = beta2 v + (1 - beta2) g g; g / (sqrt(v / correction2) + epsilon) + weight_decay y is the direction of z.
static void update(UpdateStep &step) {
  nn::TensorBuilder &b = step.b;
  averageSquare(step);
  Value direction = b.div(step.gradient, correctedDivisor(step, step.states[kAverageSquare]));
  if (Value decay = step.scalar(kWeightDecay))
    direction = b.add(direction, step.scale(ahead(step), decay));
  averageStep(step, kBeta1, direction);
}

static const char *movesAlways(const Settings &) { return "the average of weights"; }

const OptimizerDefinition kScheduleFreeAdamWOptimizer = {
    .name = "schedule_free_adamw",
    .meaning = "adamw whose weights are averages, which takes the place of a schedule",
    .keys =
        momentKeys(2.5e-3, epsilonKey(),
                   weightDecayKey(0, "added to the direction, times what training reads"), averagingKeys()),
    .shared = averagingShared({correctionState(kCorrection2, kBeta2)}),
    .states = averagingStates({{kAverageSquare}}),
    .update = update,
    .movesAlways = movesAlways,
    .spans = "other weights in training",
    .ahead = ahead};

} // namespace ortc::train
