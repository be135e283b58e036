// What a file of --metrics says, as series over steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

/// Numbers over steps, which only rise; NaN where a value was not finite.
struct Series {
  std::vector<double> steps, values;
};

struct MetricsLog {
  std::string path;
  std::map<std::string, Series> ofSteps; ///< by key of a step: "loss", "lr", "ms", ...
  /// By key of an event `eval`: "eval_loss", ..., then by the averages that it was of: "ema", "swa", "" for none.
  std::map<std::string, std::map<std::string, Series>> ofEvaluations;
  /// By tensor (and "NAME, gradient"), then "min", "mean", "max".
  std::map<std::string, std::map<std::string, Series>> watched;
  double milliseconds = 0; ///< of all steps that were done, also those done again
  std::vector<std::pair<int64_t, std::string>>
      events; ///< the step, and what happened; not evaluations and saves
  std::vector<nlohmann::json> profiles;

  /// Reads a file of JSON lines. A line that is none of ours is refused with its number. Where a training went on from
  /// an earlier step, what it did after that step before counts no more.
  static Status read(const std::string &path, MetricsLog &log);
};

} // namespace ortc::engine
