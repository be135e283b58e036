// Learning rates over time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <variant>

#include "support/EditDistance.h"
#include "support/Rate.h"
#include "support/ScheduleForms.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc {
namespace {

struct Kind {
  const char *name;
  ScheduleKind kind;
  std::vector<const char *> keys; ///< in the order of messages and of format()
  std::vector<const char *> needed = {};
  Anneal anneal = Anneal::Linear;
  std::vector<const char *> anneals = {}; ///< what the key may be; the first is the default
};

/// A key, what it may be in words, and the field it fills.
struct Field {
  const char *name, *range;
  std::variant<int64_t Schedule::*, double Schedule::*> field;
  double least, most; ///< what it may be
};

} // namespace

static const std::vector<Kind> &listKinds() {
  static const std::vector<Kind> kinds = {
      {"constant", ScheduleKind::Constant, {"warmup"}},
      {"linear", ScheduleKind::Linear, {"warmup", "min", "total"}},
      {"step", ScheduleKind::Step, {"warmup", "step_size", "gamma"}, {"step_size"}},
      {"multistep", ScheduleKind::MultiStep, {"warmup", "milestones", "gamma"}, {"milestones"}},
      {"exponential", ScheduleKind::Exponential, {"warmup", "gamma"}, {"gamma"}},
      {"polynomial", ScheduleKind::Polynomial, {"warmup", "power", "min", "total"}},
      {"cosine", ScheduleKind::Cosine, {"warmup", "min", "total"}, {}, Anneal::Cosine},
      {"cosine_restarts",
       ScheduleKind::CosineRestarts,
       {"warmup", "period", "mult", "min"},
       {"period"},
       Anneal::Cosine},
      {"one_cycle",
       ScheduleKind::OneCycle,
       {"pct_start", "div_factor", "final_div_factor", "anneal", "total"},
       {},
       Anneal::Cosine,
       {"cosine", "linear"}},
      {"inverse_sqrt", ScheduleKind::InverseSqrt, {"warmup", "timescale"}},
      {"wsd",
       ScheduleKind::Wsd,
       {"warmup", "decay", "anneal", "min", "total"},
       {"decay"},
       Anneal::Linear,
       {"linear", "cosine", "sqrt"}}};
  return kinds;
}

constexpr const char *kAnneals[] = {"linear", "cosine", "sqrt"};
constexpr double kMost = double(kMostScheduledSteps), kLargest = 3.4e38;

static const std::vector<Field> &listFields() {
  static const std::vector<Field> fields = {
      {"warmup", "a number of steps", &Schedule::warmup, 0, kMost},
      {"total", "a number of steps", &Schedule::total, 0, kMost},
      {"step_size", "a number of steps of at least 1", &Schedule::stepSize, 1, kMost},
      {"period", "a number of steps of at least 1", &Schedule::period, 1, kMost},
      {"mult", "a whole number from 1 to 1000", &Schedule::mult, 1, 1000},
      {"timescale", "a number of steps of at least 1", &Schedule::timescale, 1, kMost},
      {"decay", "a number of steps of at least 1", &Schedule::decay, 1, kMost},
      {"min", "a number of at least 0", &Schedule::minimum, 0, kLargest},
      {"gamma", "a number from 1e-12 to 1", &Schedule::gamma, 1e-12, 1},
      {"power", "a number from 0.01 to 100", &Schedule::power, 0.01, 100},
      {"pct_start", "a number from 0 to 1", &Schedule::pctStart, 0, 1},
      {"div_factor", "a number from 1 to 1e12", &Schedule::divFactor, 1, 1e12},
      {"final_div_factor", "a number from 1e-12 to 1e12", &Schedule::finalDivFactor, 1e-12, 1e12}};
  return fields;
}

static const Kind &kindOf(const Schedule &schedule) {
  return *std::find_if(listKinds().begin(), listKinds().end(),
                       [&](const Kind &kind) { return kind.kind == schedule.kind; });
}

template <typename Names> static std::string join(const Names &names) {
  return joinWords({names.begin(), names.end()});
}

static bool hasKey(const Kind &kind, std::string_view name) {
  return std::find(kind.keys.begin(), kind.keys.end(), name) != kind.keys.end();
}

/// "linear, cosine and wsd": the kinds with a key.
static std::string listKindsWith(std::string_view key) {
  std::vector<std::string> names;
  for (const Kind &kind : listKinds())
    if (hasKey(kind, key))
      names.emplace_back(kind.name);
  return join(names);
}

std::string listSchedules() {
  std::vector<std::string> names;
  for (const Kind &kind : listKinds())
    names.emplace_back(kind.name);
  return join(names);
}

std::vector<ScheduleForm> listScheduleForms() {
  std::vector<ScheduleForm> forms;
  for (const Kind &kind : listKinds())
    forms.push_back({kind.name, {kind.keys.begin(), kind.keys.end()}});
  return forms;
}

static Status refuse(const std::string &text, const std::string &what) {
  return Status::refusal("learning-rate schedule '" + text + "': " + what);
}

template <typename Number> static bool read(std::string_view text, Number &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

static bool readField(std::string_view text, const Field &field, Schedule &schedule) {
  return std::visit(
      [&](auto member) {
        auto &value = schedule.*member;
        return read(text, value) && double(value) >= field.least && double(value) <= field.most;
      },
      field.field);
}

/// 30/60/90.
static bool readMilestones(std::string_view text, std::vector<int64_t> &milestones) {
  for (;;) {
    size_t slash = text.find('/');
    int64_t step = 0;
    if (!read(text.substr(0, slash), step) || step < 1 || double(step) > kMost ||
        (!milestones.empty() && step <= milestones.back()) || milestones.size() == 1000)
      return false;
    milestones.push_back(step);
    if (slash == std::string_view::npos)
      return true;
    text.remove_prefix(slash + 1);
  }
}

Status Schedule::parse(const std::string &text, Schedule &schedule) {
  std::set<std::string_view> given;
  std::string_view rest = text;
  size_t colon = rest.find(':');
  auto kind = std::find_if(listKinds().begin(), listKinds().end(),
                           [&](const Kind &each) { return rest.substr(0, colon) == each.name; });
  if (kind == listKinds().end()) {
    std::vector<std::string> names;
    for (const Kind &each : listKinds())
      names.push_back(each.name);
    return refuse(text, "there are " + joinWords(names) + suggestWord(rest.substr(0, colon), names));
  }
  Schedule parsed;
  parsed.kind = kind->kind;
  parsed.anneal = kind->anneal;
  while (colon != std::string_view::npos) {
    rest.remove_prefix(colon + 1);
    colon = rest.find(',');
    std::string_view item = rest.substr(0, colon);
    size_t equals = item.find('=');
    std::string_view key = item.substr(0, equals);
    std::string_view value = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    // Of a constant rate, which checkpoints have had all of them with.
    bool isKnown = hasKey(*kind, key) || key == "warmup" || key == "min" || key == "total";
    if (!isKnown || (kind->kind == ScheduleKind::OneCycle && key == "warmup"))
      return refuse(text, "it has no option '" + std::string(key) + "'; it takes " + join(kind->keys) +
                              suggestWord(key, {kind->keys.begin(), kind->keys.end()}));
    if (!given.emplace(key).second)
      return refuse(text, std::string(key) + " is given twice");
    if (key == "milestones") {
      if (!readMilestones(value, parsed.milestones))
        return refuse(text, "milestones must be rising numbers of steps with slashes between, such as "
                            "3000/6000, at most 1000");
      continue;
    }
    if (key == "anneal") {
      auto word = std::find(kind->anneals.begin(), kind->anneals.end(), value);
      if (word == kind->anneals.end())
        return refuse(text,
                      "anneal is '" + std::string(value) + "' but must be one of " + join(kind->anneals));
      parsed.anneal = Anneal(std::find(std::begin(kAnneals), std::end(kAnneals), value) - kAnneals);
      continue;
    }
    auto field = std::find_if(listFields().begin(), listFields().end(),
                              [&](const Field &each) { return key == each.name; });
    if (!readField(value, *field, parsed))
      return refuse(text, std::string(key) + " must be " + field->range);
    if (key == "total" && parsed.total == 0)
      return refuse(text,
                    "total is 0, but it must be at least 1; without it the schedule ends where the run ends");
  }
  for (const char *key : kind->needed)
    if (!given.count(key))
      return refuse(text, "it needs " + std::string(key) + "; it takes " + join(kind->keys));
  schedule = parsed;
  return Status();
}

Status Schedule::check(const std::string &text) const {
  const Kind &own = kindOf(*this);
  auto idle = [&](const char *key, const std::string &value) {
    std::string what = kind == ScheduleKind::Constant ? "a constant rate" : std::string(own.name);
    return refuse(text, std::string(key) + " " + value + " has no effect on " + what + "; " +
                            listKindsWith(key) + " take it");
  };
  if (total != 0 && !hasKey(own, "total"))
    return idle("total", std::to_string(total));
  if (minimum != 0 && !hasKey(own, "min"))
    return idle("min", formatShort(minimum));
  if (total != 0 && total <= warmup)
    return refuse(text, "total " + std::to_string(total) + " must be more than the " +
                            formatCount(warmup, "step") + " of warmup, after which the rate falls");
  if (total != 0 && kind == ScheduleKind::Wsd && decay > total - warmup)
    return refuse(text, "decay " + std::to_string(decay) + " must be at most the " +
                            formatCount(total - warmup, "step") + " behind the warm-up");
  return Status();
}

Status Schedule::checkEnd(const std::string &text) const {
  return isFalling() && total == 0
             ? refuse(text,
                      "it needs total=N, the steps of the whole training: an artifact does not know where a "
                      "run ends")
             : Status();
}

Status Schedule::checkRate(double base) const {
  if (!hasKey(kindOf(*this), "min") || minimum <= base)
    return Status();
  return refuse(format(), "min " + formatNumber(minimum) + " must be at most the learning rate of " +
                              formatNumber(base) +
                              ", which falls towards it; give a smaller min or a larger --lr");
}

std::string Schedule::format() const {
  const Kind &own = kindOf(*this);
  std::string text = own.name;
  auto add = [&](const char *key, const std::string &value) {
    text += (text == own.name ? ":" : ",") + std::string(key) + "=" + value;
  };
  for (const char *key : own.keys) {
    if (std::string_view(key) == "milestones") {
      std::string steps;
      for (int64_t step : milestones)
        steps += (steps.empty() ? "" : "/") + std::to_string(step);
      add(key, steps);
      continue;
    }
    if (std::string_view(key) == "anneal") {
      add(key, kAnneals[int(anneal)]);
      continue;
    }
    auto field = std::find_if(listFields().begin(), listFields().end(),
                              [&](const Field &each) { return each.name == std::string_view(key); });
    if (auto *count = std::get_if<int64_t Schedule::*>(&field->field)) {
      if (int64_t value = this->**count; value || std::string_view(key) == "warmup")
        add(key, std::to_string(value));
    } else {
      add(key, formatExact(this->*std::get<double Schedule::*>(field->field)));
    }
  }
  return text;
}

bool Schedule::isFalling() const { return hasKey(kindOf(*this), "total"); }

double Schedule::getRate(double base, int64_t step) const { return rates::rateOf(*this, base, double(step)); }

} // namespace ortc
