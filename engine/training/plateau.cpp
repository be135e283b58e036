// A learning rate that falls where evaluations get no better: torch.optim.lr_scheduler.ReduceLROnPlateau.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/session/position.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc::engine {

static constexpr double kLargest = std::numeric_limits<double>::max();

Status Plateau::parse(const std::string &text, Plateau &plateau) {
  const std::string what = "learning-rate schedule '" + text + "'";
  Plateau parsed;
  Spec spec;
  ORTC_TRY(parseSpec(text, what, spec));
  if (spec.name != kName)
    return Status::refusal(what + " is no " + kName);
  ORTC_TRY(checkKeys(spec, what,
                     {"factor", "patience", "threshold", "threshold_mode", "cooldown", "min", "epsilon"}));
  ORTC_TRY(readNumber(spec, what, "factor", 0, 1, parsed.factor));
  ORTC_TRY(readWhole(spec, what, "patience", 0, kMostSteps, parsed.patience));
  ORTC_TRY(readNumber(spec, what, "threshold", 0, kLargest, parsed.threshold));
  ORTC_TRY(readWhole(spec, what, "cooldown", 0, kMostSteps, parsed.cooldown));
  ORTC_TRY(readNumber(spec, what, "min", 0, kLargest, parsed.minimum));
  ORTC_TRY(readNumber(spec, what, "epsilon", 0, kLargest, parsed.epsilon));
  if (parsed.factor == 1)
    return Status::refusal(what + ": factor is 1, but it must be below 1 for the rate to fall");
  if (auto mode = spec.values.find("threshold_mode"); mode != spec.values.end()) {
    if (mode->second != "rel" && mode->second != "abs")
      return Status::refusal(what + ": threshold_mode is '" + mode->second + "'; " +
                             describeNames(mode->second, {"rel", "abs"}));
    parsed.isRelative = mode->second == "rel";
  }
  plateau = parsed;
  return Status();
}

std::string Plateau::format() const {
  return std::string(kName) + ":factor=" + formatExact(factor) + ",patience=" + std::to_string(patience) +
         ",threshold=" + formatExact(threshold) + ",threshold_mode=" + (isRelative ? "rel" : "abs") +
         ",cooldown=" + std::to_string(cooldown) + ",min=" + formatExact(minimum) +
         ",epsilon=" + formatExact(epsilon);
}

bool Plateau::isBetter(double value, bool isMaximum) const {
  if (!best || !std::isfinite(value))
    return std::isfinite(value);
  if (isRelative)
    return isMaximum ? value > *best * (threshold + 1) : value < *best * (1 - threshold);
  return isMaximum ? value > *best + threshold : value < *best - threshold;
}

double Plateau::follow(double value, bool isMaximum, double rate) {
  if (isBetter(value, isMaximum)) {
    best = value;
    bad = 0;
  } else {
    ++bad;
  }
  if (cooling > 0) {
    --cooling;
    bad = 0;
  }
  if (bad <= patience)
    return rate;
  cooling = cooldown;
  bad = 0;
  double lower = std::max(rate * factor, minimum);
  return rate - lower > epsilon ? lower : rate;
}

std::string Plateau::formatState() const {
  return "state:bad=" + std::to_string(bad) + (best ? ",best=" + formatExact(*best) : "") +
         ",cooling=" + std::to_string(cooling);
}

Status Plateau::parseState(const std::string &text) {
  Spec spec;
  ORTC_TRY(parseSpec(text, text, spec));
  ORTC_TRY(checkKeys(spec, text, {"bad", "best", "cooling"}));
  if (spec.name != "state" || !spec.values.count("bad") || !spec.values.count("cooling"))
    return Status::refusal(text + " is no state of a " + kName);
  ORTC_TRY(readWhole(spec, text, "bad", 0, kMostSteps, bad));
  ORTC_TRY(readWhole(spec, text, "cooling", 0, kMostSteps, cooling));
  if (spec.values.count("best"))
    ORTC_TRY(readNumber(spec, text, "best", -kLargest, kLargest, best.emplace(0)));
  return Status();
}

} // namespace ortc::engine
