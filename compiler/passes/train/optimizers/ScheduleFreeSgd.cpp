// The optimizer schedule_free_sgd: SGDScheduleFree of the package schedulefree (arXiv:2405.15682).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/ScheduleFree.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kMomentum = "momentum";

static Value ahead(UpdateStep &step) { return readAhead(step, kMomentum); }

/// g + weight_decay y is the direction of z.
static void update(UpdateStep &step) {
  Value direction = step.gradient;
  if (Value decay = step.scalar(kWeightDecay))
    direction = step.b.add(direction, step.scale(ahead(step), decay));
  averageStep(step, kMomentum, direction);
}

static std::vector<Key> keys() {
  std::vector<Key> all = {lrKey(1), betaKey(kMomentum, 0.9, "share of the average in what training reads"),
                          gradientDecayKey()};
  for (Key &key : averagingKeys())
    all.push_back(std::move(key));
  return all;
}

static const char *movesAlways(const Settings &) { return "the average of weights"; }

const OptimizerDefinition kScheduleFreeSgdOptimizer = {
    .name = "schedule_free_sgd",
    .meaning = "gradient descent whose weights are averages, which takes the place of a schedule",
    .keys = keys(),
    .shared = averagingShared(),
    .states = averagingStates(),
    .update = update,
    .movesAlways = movesAlways,
    .spans = "other weights in training",
    .ahead = ahead};

} // namespace ortc::train
