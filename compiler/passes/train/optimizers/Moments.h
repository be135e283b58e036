// What optimizers with averages of gradients and of their squares share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Optimizers.h"

namespace ortc::train {

inline constexpr const char *kBeta1 = "beta1", *kBeta2 = "beta2", *kEpsilon = "epsilon";
inline constexpr const char *kCorrection1 = "bias_correction1", *kCorrection2 = "bias_correction2";
inline constexpr const char *kAverage = "exp_avg", *kAverageSquare = "exp_avg_sq";
inline constexpr const char *kDecoupled = "decoupled_weight_decay";

/// lr, beta1, beta2, epsilon and `decay`, then `more`.
std::vector<Key> momentKeys(double lr, Key epsilon, Key decay, std::vector<Key> more = {});
/// 1 - beta^t for both.
std::vector<SharedState> momentCorrections();
std::vector<StateDefinition> momentStates();
/// Both averages move without a gradient.
const char *momentsMoveAlways(const Settings &settings);

/// m += (g - m)(1 - beta1)
void averageGradient(UpdateStep &step);
/// v = beta2 v + (1 - beta2) g g
void averageSquare(UpdateStep &step);
/// Both.
void averageMoments(UpdateStep &step);
/// sqrt(v / correction2) + epsilon
mlir::Value correctedDivisor(UpdateStep &step, mlir::Value v);
/// Weight decay as the switch decoupled_weight_decay says.
void decayAsSwitched(UpdateStep &step);

/// amsgrad, a switch of those that updateByMoments() serves, and its state.
Key amsgradKey();
StateDefinition amsgradState();

/// epsilon_hat, another one: the epsilon of the formula before section 2.1 of "Adam" (arXiv 1412.6980).
Key epsilonHatKey();

/// p -= lr / correction1 m / (sqrt(v / correction2) + epsilon), with amsgrad of the largest v so far. With epsilon_hat,
/// and of sparse tables, as torch.optim.SparseAdam has it: p -= lr sqrt(correction2) / correction1 m / (sqrt(v) +
/// epsilon).
void updateByMoments(UpdateStep &step);

// The formulas of adamw and lion, whatever their averages are kept in.
void updateAdamW(UpdateStep &step);
std::vector<Key> lionKeys();
void updateLion(UpdateStep &step);

} // namespace ortc::train
