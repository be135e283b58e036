// What a step does beside the optimizer's formula.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/options/UpdateSpecs.h"

#include "compiler/options/CompileOptions.h"
#include "support/EditDistance.h"

namespace ortc {

Expected<Schedule> parseSchedule(std::string_view text) {
  size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  if (equals == std::string_view::npos || name != "lr")
    return Status::refusal(
        quote(text) +
        " names no hyper-parameter that has a schedule; write lr=KIND:key=value,..., where KIND is "
        "one of " +
        listSchedules());
  std::string spec(text.substr(equals + 1));
  Schedule schedule;
  ORTC_TRY(Schedule::parse(spec, schedule));
  ORTC_TRY(schedule.check(spec));
  ORTC_TRY(schedule.checkEnd(spec));
  return schedule;
}

Expected<EmaSpec> parseEma(std::string_view text) {
  EmaSpec parsed;
  const std::vector<Key> keys = {
      {"decay", parsed.decay, kFraction, "share of the average that an update keeps"},
      {"warmup", parsed.warmsUp, kSwitch, "a smaller decay at first: at most 1 - (1 + t / gamma)^-power"},
      {"gamma", parsed.gamma, kPositive, "of the warm-up"},
      {"power", parsed.power, kPositive, "of the warm-up"}};
  KeyValues given;
  ORTC_TRY(parseKeys(text, "average", keys).moveTo(given));
  Settings settings(keys, given);
  parsed.decay = settings.getNumber("decay");
  parsed.warmsUp = settings.isOn("warmup");
  parsed.gamma = settings.getNumber("gamma");
  parsed.power = settings.getNumber("power");
  if (!parsed.warmsUp && (given.count("gamma") || given.count("power")))
    return Status::refusal("gamma and power are those of warmup=1; leave them out, or add it");
  return parsed;
}

Expected<SwaSpec> parseSwa(std::string_view text) {
  SwaSpec parsed;
  const std::vector<Key> keys = {{"start", parsed.start, kWhole, "updates that take no part"},
                                 {"every", parsed.every, kWhole, "of the others, one in so many takes part"}};
  KeyValues given;
  ORTC_TRY(parseKeys(text, "average", keys).moveTo(given));
  Settings settings(keys, given);
  parsed.start = settings.getInteger("start");
  parsed.every = settings.getInteger("every");
  if (parsed.start < 0 || parsed.start > kMostScheduledSteps)
    return Status::refusal("start is " + std::to_string(parsed.start) + " but must be from 0 to 2^50");
  if (parsed.every < 1 || parsed.every > kMostScheduledSteps)
    return Status::refusal("every is " + std::to_string(parsed.every) + " but must be from 1 to 2^50");
  return parsed;
}

Expected<RegularizeSpec> parseRegularize(std::string_view text) {
  RegularizeSpec parsed;
  const std::vector<Key> keys = {
      {"l1", parsed.l1, kNotNegative, "of l1 sum |w|, added to the loss that is differentiated"},
      {"l2", parsed.l2, kNotNegative, "of l2 sum w^2"},
      {"max_norm", parsed.maxNorm, kNotNegative,
       "largest norm of what has one index along the axis; 0: no limit"},
      {"axis", parsed.axis, kWhole, "of max_norm: the one that numbers units, from 0"}};
  std::string_view regex, rest;
  if (!splitPattern(text, regex, rest))
    return Status::refusal(quote(text) +
                           " regularises nothing; write REGEX:l1=X,l2=Y,max_norm=Z with some of them");
  std::string what = "regularisation " + quote(regex);
  KeyValues given;
  ORTC_TRY(NamePattern::parse(regex).moveTo(parsed.pattern));
  ORTC_TRY(parseKeys(rest, what, keys).moveTo(given));
  Settings settings(keys, given);
  parsed.l1 = settings.getNumber("l1");
  parsed.l2 = settings.getNumber("l2");
  parsed.maxNorm = settings.getNumber("max_norm");
  parsed.axis = settings.getInteger("axis");
  parsed.text = std::string(text);
  if (parsed.axis < 0 || parsed.axis > 7)
    return Status::refusal(what + ": axis is " + std::to_string(parsed.axis) + " but must be from 0 to 7");
  if (given.count("axis") && parsed.maxNorm == 0)
    return Status::refusal(what + ": axis is that of max_norm; leave it out, or add a max_norm");
  return parsed;
}

Status parseStepOutputs(std::string_view text, UpdateSpecs &specs) {
  for (;;) {
    std::string_view word = text.substr(0, text.find(','));
    bool *field = word == "grad_norm"    ? &specs.gradientNorm
                  : word == "param_norm" ? &specs.parameterNorm
                                         : nullptr;
    if (!field)
      return Status::refusal(quote(word) + " is no number of a step; there are grad_norm and param_norm" +
                             suggestWord(word, {"grad_norm", "param_norm"}));
    if (*field)
      return Status::refusal(quote(word) + " is given twice");
    *field = true;
    if (word.size() == text.size())
      return Status();
    text.remove_prefix(word.size() + 1);
  }
}

const char *findUpdateFlag(const UpdateSpecs &specs) {
  return specs.schedule                              ? "--schedule"
         : specs.gradientNorm || specs.parameterNorm ? "--step-outputs"
         : specs.ema                                 ? "--ema"
         : specs.swa                                 ? "--swa"
         : !specs.regularizers.empty()               ? "--regularize"
         : specs.masks                               ? "--mask"
                                                     : nullptr;
}

const char *findWholeTableFlag(const UpdateSpecs &specs) {
  UpdateSpecs rows = specs; // what rows can do
  rows.schedule.reset();
  rows.gradientNorm = false;
  return rows.parameterNorm ? "--step-outputs param_norm" : findUpdateFlag(rows);
}

} // namespace ortc
