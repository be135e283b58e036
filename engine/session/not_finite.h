// Why a training has come to a loss, or to weights, that are not finite.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/session/failed_step.h"
#include "engine/session/finite_check.h"

namespace ortc::engine {

/// The finite losses of a run.
struct LossTrend {
  double first = 0, last = 0;
  int64_t lastStep = -1; ///< -1: there was none

  void add(double loss, int64_t step) {
    first = lastStep < 0 ? loss : first;
    last = loss;
    lastStep = step;
  }
  bool isEmpty() const { return lastStep < 0; }
};

/// The facts that are known when it is found.
struct NotFiniteStep {
  const FailedStep &step;
  FiniteCheck &check;
  const LossTrend &losses;
  /// The state of the parameters after its update, where that was looked at.
  std::optional<BadTensor> update = std::nullopt;
  /// Whether the parameters are still those that the step has read.
  bool isUntouched = false;
  /// Whether an update of this run came before.
  bool hasUpdates = false;
};

/// "; the numbers grew: ..., try a smaller --lr" where they did; else "". `now`: the largest parameter.
std::string describeGrowth(const FiniteCheck &check, const LossTrend &losses, double now);

/// The reason, in the order in which one hides the others: NaN in the data, labels that give no loss, NaN in the model,
/// numbers that grew, infinities in data and model, an operation without a value or a derivative where it is. "; ...",
/// or "" where nothing is known.
Status explainNotFinite(const NotFiniteStep &met, std::string &reason);

} // namespace ortc::engine
