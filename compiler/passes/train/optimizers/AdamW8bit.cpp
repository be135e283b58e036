// The optimizer adamw8bit: adamw with its averages in bytes, as bitsandbytes.optim.AdamW8bit has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

namespace ortc::train {

const OptimizerDefinition kAdamW8bitOptimizer = {
    .name = "adamw8bit",
    .meaning = "adamw whose averages are bytes where a tensor has 4,096 values or more and is of no norm",
    .keys = momentKeys(1e-3, epsilonKey(), ownDecayKey(1e-2), {maximizeKey()}),
    .shared = momentCorrections(),
    .states = {{.name = kAverage, .storage = Storage::Bytes},
               {.name = kAverageSquare, .storage = Storage::PositiveBytes}},
    .update = updateAdamW,
    .spans = "the largest of 256 values"};

} // namespace ortc::train
