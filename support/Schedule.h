// Learning rates over time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc {

enum class ScheduleKind {
  Constant,
  Linear,
  Step,
  MultiStep,
  Exponential,
  Polynomial,
  Cosine,
  CosineRestarts,
  OneCycle,
  InverseSqrt,
  Wsd
};
enum class Anneal { Linear, Cosine, Sqrt };

/// `--lr-schedule KIND[:key=value,...]` of a host, `--schedule lr=KIND[:key=value,...]` of an artifact. Formulas are
/// in support/Rate.h.
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  int64_t warmup = 0; ///< steps
  /// Steps of the whole training, warm-up included; 0: not given, and the schedule ends where the run ends.
  int64_t total = 0;
  double minimum = 0; ///< what a falling rate ends at
  double gamma = 0.1, power = 1;
  int64_t stepSize = 0;
  std::vector<int64_t> milestones; ///< rising
  int64_t period = 0, mult = 1;    ///< of cosine_restarts
  int64_t timescale = 0;           ///< 0: not given
  int64_t decay = 0;               ///< steps of the fall, of wsd
  Anneal anneal = Anneal::Linear;  ///< how linear, cosine, cosine_restarts, one_cycle and wsd fall
  double pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4;

  static Status parse(const std::string &text, Schedule &schedule);
  /// Refuses what parse() has read but has no effect, where somebody wrote `text`: checkpoints have the keys
  /// of format().
  Status check(const std::string &text) const;
  /// Refuses a schedule that has no end of its own where there is no run to end with.
  Status checkEnd(const std::string &text) const;
  /// Refuses a minimum that the rate would rise to.
  Status checkRate(double base) const;
  /// The text parse() takes; without a total where none is given.
  std::string format() const;

  /// Whether the rate falls towards what it has at `total`.
  bool isFalling() const;
  /// Whether it is one rate for all steps.
  bool isPlain() const { return kind == ScheduleKind::Constant && warmup == 0; }
  /// The step that first has the whole base.
  double getTop() const { return warmup > 0 ? double(warmup - 1) : 0; }
  int64_t getTimescale() const { return timescale ? timescale : warmup ? warmup : 10000; }

  /// The learning rate of a step, counted from 0 over all runs of a training. It rises over `warmup` steps, the last of
  /// which has the whole `base`.
  double getRate(double base, int64_t step) const;
};

/// Of a schedule: a double counts further, and has room for a half.
constexpr int64_t kMostScheduledSteps = int64_t(1) << 50;

/// "constant, linear, ... and wsd".
std::string listSchedules();

} // namespace ortc
