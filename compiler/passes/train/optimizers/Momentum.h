// What optimizers with the momentum of sgd share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Optimizers.h"

namespace ortc::train {

/// lr, momentum, weight_decay, nesterov, dampening.
std::vector<Key> directionKeys(double lr);
const char *contradictDirection(const Settings &settings);
std::vector<SharedState> directionShared();
std::vector<StateDefinition> directionStates();
const char *directionMovesAlways(const Settings &settings);

/// v = momentum v + (1 - dampening) g; the direction is v (with nesterov: g + momentum v), or g without a momentum. The
/// first gradient is taken whole.
mlir::Value directionOf(UpdateStep &step);

} // namespace ortc::train
