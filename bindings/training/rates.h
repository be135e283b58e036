// The learning rates of a training whose loop is a program's own: --lr-schedule of ortc run, step by step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <string>

#include "engine/training/plateau.h"
#include "support/Schedule.h"

namespace ortc::bindings {

class Rates {
public:
  /// `text`: a schedule or a plateau. `base`: the rate that it begins with. `steps`: of the whole training, where a
  /// schedule without a total ends; 0: not known. Refuses what `ortc run` refuses.
  static Status parse(const std::string &text, double base, int64_t steps, Rates &rates);

  /// The rate of a step, counted from 0; that of a plateau depends on evaluations and not on the step.
  double get(int64_t step) const { return plateau ? base : schedule.getRate(base, step); }
  /// One evaluation more, which only a plateau heeds: its rate may fall.
  void follow(double value, bool isMaximum) {
    if (plateau)
      base = plateau->follow(value, isMaximum, base);
  }

  /// A plateau's memory of evaluations; empty for schedules.
  std::string formatState() const { return plateau ? plateau->formatState() : ""; }
  Status parseState(const std::string &text);

private:
  double base = 0;
  Schedule schedule;
  std::optional<engine::Plateau> plateau;
};

} // namespace ortc::bindings
