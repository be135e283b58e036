// What schedule-free optimizers share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three points: z takes the steps of the optimizer, x is the weighted average of all z, and training reads y between
// them. The parameter is x, so that whatever is no training reads it. The state is z - x, zero at first: where weights
// alone are loaded, z begins at them. A step that holds what training reads has y for its parameter and the state z, as
// the package schedulefree has them.
#pragma once

#include "compiler/passes/train/Optimizers.h"

namespace ortc::train {

/// warmup_steps, r and weight_lr_power.
std::vector<Key> averagingKeys();
/// The number of updates, the largest lr so far and the sum of weights; `more` stand behind them.
std::vector<SharedState> averagingShared(std::vector<SharedState> more = {});
std::vector<StateDefinition> averagingStates(std::vector<StateDefinition> more = {});

/// y = x + (1 - key)(z - x), or the parameter where it is that; `key` names the share of x.
mlir::Value readAhead(UpdateStep &step, const char *key);
/// z -= lr w direction, with w of the warm-up; x += c (z - x), with c the weight of this step among all so far. `key`
/// names the share of x in y.
void averageStep(UpdateStep &step, const char *key, mlir::Value direction);

} // namespace ortc::train
