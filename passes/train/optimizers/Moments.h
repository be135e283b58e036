// What optimizers with averages of gradients and of their squares share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "passes/train/Optimizers.h"

namespace ortc::train {

/// The keys of adam and its relatives.
std::vector<Key> momentKeys(double weightDecay, const char *decayMeaning);
std::vector<Correction> momentCorrections();
std::vector<StateDefinition> momentStates();

/// m += (g - m)(1 - beta1); v = beta2 v + (1 - beta2) g g; p -= lr / correction1 m / (sqrt(v / correction2) +
/// epsilon). Of sparse tables, as torch.optim.SparseAdam has it: p -= lr sqrt(correction2) / correction1 m /
/// (sqrt(v) + epsilon).
void updateByMoments(UpdateStep &step);

} // namespace ortc::train
