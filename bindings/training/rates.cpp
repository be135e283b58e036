// The learning rates of a training whose loop is a program's own: --lr-schedule of ortc run, step by step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/training/rates.h"

#include <limits>

#include "engine/session/position.h"
#include "support/Text.h"

namespace ortc::bindings {

Status Rates::parse(const std::string &text, double base, int64_t steps, Rates &rates) {
  if (!(base >= 0 && base <= double(std::numeric_limits<float>::max())))
    return Status::refusal("the learning rate is " + formatNumber(base) +
                           " but must be a number from 0 to 3.4e38");
  if (steps < 0 || steps > engine::kMostSteps)
    return Status::refusal("the training has " + std::to_string(steps) + " steps but may have 0 to " +
                           std::to_string(engine::kMostSteps));
  Rates parsed;
  parsed.base = base;
  if (engine::Plateau::isNamedBy(text)) {
    ORTC_TRY(engine::Plateau::parse(text, parsed.plateau.emplace()));
  } else {
    ORTC_TRY(Schedule::parse(text, parsed.schedule));
    ORTC_TRY(parsed.schedule.check(text));
    ORTC_TRY(parsed.schedule.checkRate(base));
    if (parsed.schedule.isFalling() && parsed.schedule.total == 0 && steps == 0)
      return Status::refusal("learning-rate schedule '" + text +
                             "': it needs total=N, or to know how many steps the training has");
    if (parsed.schedule.total == 0)
      parsed.schedule.total = steps;
  }
  rates = std::move(parsed);
  return Status();
}

Status Rates::parseState(const std::string &text) {
  if (plateau)
    return plateau->parseState(text);
  return text.empty() ? Status()
                      : Status::refusal("a schedule has no state but its step, and '" + text + "' is one");
}

} // namespace ortc::bindings
