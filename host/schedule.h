// Learning rates over time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "support/Status.h"

namespace ortc::host {

enum class ScheduleKind { Constant, Linear, Cosine };

/// `--lr-schedule constant|linear|cosine[:warmup=N,min=X,total=N]`.
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  int64_t warmup = 0; ///< steps
  /// Steps of the whole training, warm-up included; 0: not given, and the schedule ends where the run ends.
  int64_t total = 0;
  double minimum = 0; ///< what linear and cosine end at

  static Status parse(const std::string &text, Schedule &schedule);
  /// Refuses what parse() has read but has no effect, where somebody wrote `text`: checkpoints have the keys
  /// of format().
  Status check(const std::string &text) const;
  /// Refuses a minimum that the rate would rise to.
  Status checkRate(double base) const;
  /// The text parse() takes; without a total where none is given.
  std::string format() const;

  /// Whether the rate falls from warm-up to `total`.
  bool isFalling() const { return kind != ScheduleKind::Constant; }

  /// The learning rate of a step, counted from 0 over all runs of a training. It rises over `warmup` steps,
  /// the last of which has the whole `base`; then it falls towards `minimum`, which the step after the last
  /// of `total` has, and all later ones.
  double getRate(double base, int64_t step) const;
};

} // namespace ortc::host
