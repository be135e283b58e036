// The command ortc run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/metrics/metric_set.h"
#include "engine/signals.h"
#include "engine/training/buckets.h"
#include "engine/training/run.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Vocabularies.h"

namespace ortc::tool {

static Expected<double> parseRate(const std::string &text) {
  double value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isNumber = status == std::errc() && end == text.data() + text.size();
  if (!isNumber || !(value >= 0 && value <= double(std::numeric_limits<float>::max())))
    return Status::refusal("'" + text + "' must be a number from 0 to 3.4e38");
  return value;
}

static Expected<uint64_t> parseSeed(const std::string &text) {
  uint64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size())
    return Status::refusal("'" + text + "' must be a whole number from 0 to 18446744073709551615");
  return value;
}

/// Refuses flags that exclude each other, or that lack another one.
static Status checkFlags(const engine::TrainOptions &options) {
  if (options.epochs && options.steps)
    return Status::refusal("--epochs and --steps are both given; one of them says how long to train");
  if (!options.buckets.empty() && !options.binding.empty())
    return Status::refusal(
        "--buckets chooses the binding of every step, and --binding one for all; give one of them");
  if (!options.evalWeights.empty() && options.evalData.empty())
    return Status::refusal("--eval-weights needs --eval-data FILE");
  if (options.rank >= options.world)
    return Status::refusal("--rank " + std::to_string(options.rank) + " must be below --world, which is " +
                           std::to_string(options.world));
  if (!options.evalMetrics.empty() && options.evalData.empty())
    return Status::refusal("--metric is computed on --eval-data FILE, which is not given");
  if (options.evalData.empty()) {
    const std::pair<const char *, bool> needing[] = {
        {"--eval-every", options.evalEvery > 0},
        {"--best", options.follow.goal.has_value()},
        {"--patience", options.follow.patience > 0},
        {"--save-best", !options.saveBest.empty()},
        {"--lr-schedule plateau", options.follow.plateau.has_value()}};
    for (const auto &[flag, isGiven] : needing)
      if (isGiven)
        return Status::refusal(std::string(flag) + " needs evaluations; give --eval-data FILE");
  }
  if (!options.watch.isEmpty() && options.metrics.empty())
    return Status::refusal("--watch writes into --metrics FILE.jsonl, which is not given");
  if (options.watchEvery && options.watch.isEmpty())
    return Status::refusal("--watch-every needs --watch REGEX");
  if (options.keep && !options.saveEvery)
    return Status::refusal("--keep is for the checkpoints of --save-every N, which is not given");
  if (options.saveEvery && options.save.empty())
    return Status::refusal("--save-every needs --save FILE");
  return Status();
}

void addRunCommand(Tool &tool) {
  auto options = std::make_shared<engine::TrainOptions>();
  CommandLine line(tool, "run");
  line.addPositional("DIR", options->artifact);
  line.addText("data", options->data);
  line.addWhole("epochs", options->epochs, 0, INT64_MAX);
  line.addWhole("steps", options->steps, 0, INT64_MAX);
  line.addFlag("no-shuffle", options->shuffle, false);
  line.addWhole("rank", options->rank, 0, INT64_MAX);
  line.addWhole("world", options->world, 1, 1 << 20);
  line.addValue("seed", [options](const std::string &text) { return parseSeed(text).moveTo(options->seed); });
  line.addValue("lr", [options](const std::string &text) { return parseRate(text).moveTo(options->lr); });
  line.addValue("lr-schedule", [options](const std::string &text) {
    if (engine::Plateau::isNamedBy(text))
      return engine::Plateau::parse(text, options->follow.plateau.emplace());
    Schedule schedule;
    Status status = Schedule::parse(text, schedule);
    options->schedule = schedule;
    return status.isOk() ? schedule.check(text) : status;
  });
  line.addText("eval-data", options->evalData);
  line.addWeights("eval-weights", options->evalWeights);
  line.addWhole("eval-every", options->evalEvery, 1, INT64_MAX);
  line.addValue("metric", [options](const std::string &text) {
    options->evalMetrics.push_back(text);
    return engine::MetricSet().add(text);
  });
  line.setVocabulary("metric", describeMetrics());
  line.setVocabulary("lr-schedule", describeSchedules(/*hasPlateau=*/true));
  line.addText("metrics", options->metrics);
  line.addValue("best", [options](const std::string &text) {
    Status status = engine::Goal::parse(text, options->follow.goal.emplace());
    const std::string &metric = options->follow.goal->metric;
    return !status.isOk() || engine::Goal::isOfLoss(metric) ? status : engine::MetricSet().add(metric);
  });
  line.addWhole("patience", options->follow.patience, 1, INT64_MAX);
  line.addText("save-best", options->saveBest);
  line.addValue("watch",
                [options](const std::string &text) { return engine::Watch::parse(text, options->watch); });
  line.addWhole("watch-every", options->watchEvery, 1, INT64_MAX);
  line.addText("save", options->save);
  line.addWhole("save-every", options->saveEvery, 1, INT64_MAX);
  line.addWhole("keep", options->keep, 1, INT64_MAX);
  line.addText("load", options->load);
  line.addText("binding", options->binding);
  line.addValue("buckets", [options](const std::string &text) {
    return engine::Buckets::parse(text, options->buckets);
  });
  line.addFlag("stop-on-nan", options->stopOnNan);
  line.addDevice(options->device);
  line.addWhole("threads", options->threads, 1, 256);
  line.addFlag("profile", options->profile);
  line.addFlag("quiet", options->quiet);
  line.setAction([options] {
    if (Status status = checkFlags(*options); !status.isOk())
      return finish(status);
    if (int refused = checkDevice(options->device, options->threads, options->profile))
      return refused;
    return finish(engine::train(*options, engine::interruption));
  });
}

} // namespace ortc::tool
