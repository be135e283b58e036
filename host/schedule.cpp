// Learning rates over time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/schedule.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <set>
#include <string_view>

#include "host/text.h"

namespace ortc::host {

Status Schedule::parse(const std::string &text, Schedule &schedule) {
  auto bad = [&](const std::string &what) {
    return Status::refusal("learning-rate schedule '" + text + "': " + what);
  };
  Schedule parsed;
  std::set<std::string_view> given;
  std::string_view rest = text;
  size_t colon = rest.find(':');
  std::string_view word = rest.substr(0, colon);
  if (word == "linear")
    parsed.kind = ScheduleKind::Linear;
  else if (word == "cosine")
    parsed.kind = ScheduleKind::Cosine;
  else if (word != "constant")
    return bad("there are constant, linear and cosine");
  while (colon != std::string_view::npos) {
    rest.remove_prefix(colon + 1);
    colon = rest.find(',');
    std::string_view item = rest.substr(0, colon);
    size_t equals = item.find('=');
    std::string_view key = item.substr(0, equals);
    std::string_view value = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    if (!given.emplace(key).second)
      return bad(std::string(key) + " is given twice");
    if (key == "warmup" || key == "total") {
      int64_t steps = 0;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), steps);
      if (error != std::errc() || end != value.data() + value.size() || steps < 0)
        return bad(std::string(key) + " must be a number of steps");
      if (key == "total" && steps == 0)
        return bad("total is 0, but it must be at least 1; without it the schedule ends where the run ends");
      (key == "warmup" ? parsed.warmup : parsed.total) = steps;
    } else if (key == "min") {
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed.minimum);
      if (error != std::errc() || end != value.data() + value.size() || !(parsed.minimum >= 0) ||
          std::isinf(parsed.minimum))
        return bad("min must be a number of at least 0");
    } else {
      return bad("it has no option '" + std::string(key) + "'; it takes warmup, min and total");
    }
  }
  schedule = parsed;
  return Status();
}

Status Schedule::check(const std::string &text) const {
  auto bad = [&](const std::string &what) {
    return Status::refusal("learning-rate schedule '" + text + "': " + what);
  };
  const char *const other = "; linear and cosine take it";
  if (!isFalling() && total != 0)
    return bad("total " + std::to_string(total) + " has no effect on a constant rate" + other);
  if (!isFalling() && minimum != 0)
    return bad("min " + formatShort(minimum) + " has no effect on a constant rate" + other);
  if (total != 0 && total <= warmup)
    return bad("total " + std::to_string(total) + " must be more than the " + formatCount(warmup, "step") +
               " of warmup, after which the rate falls");
  return Status();
}

Status Schedule::checkRate(double base) const {
  if (!isFalling() || minimum <= base)
    return Status();
  return Status::refusal("learning-rate schedule '" + format() + "': min " + formatNumber(minimum) +
                         " must be at most the learning rate of " + formatNumber(base) +
                         ", which falls towards it; give a smaller min or a larger --lr");
}

std::string Schedule::format() const {
  std::string text = kind == ScheduleKind::Linear   ? "linear"
                     : kind == ScheduleKind::Cosine ? "cosine"
                                                    : "constant";
  return text + ":warmup=" + std::to_string(warmup) + ",min=" + formatExact(minimum) +
         (total ? ",total=" + std::to_string(total) : "");
}

double Schedule::getRate(double base, int64_t step) const {
  if (step < warmup)
    return base * double(step + 1) / double(warmup);
  if (kind == ScheduleKind::Constant)
    return base;
  // The fall begins at the step that has the whole base and would end one step after the last: no step is
  // wasted at a rate of 0.
  int64_t top = warmup > 0 ? warmup - 1 : 0;
  int64_t span = total - top;
  if (step - top >= span)
    return step == top ? base : minimum;
  double progress = double(step - top) / double(span);
  double share =
      kind == ScheduleKind::Linear ? 1 - progress : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return minimum + (base - minimum) * share;
}

} // namespace ortc::host
