// The command ortc run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <charconv>
#include <cmath>
#include <limits>

#include "host/buckets.h"
#include "host/metrics/metric_set.h"
#include "host/signals.h"
#include "host/train_loop.h"
#include "tools/ortc/Commands.h"

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

void addRunCommand(CLI::App &app, Action &action) {
  auto options = std::make_shared<host::TrainOptions>();
  CommandLine line(app, "run", "trains an artifact on this machine");
  line.addPositional("DIR", "the artifact", options->artifact);
  line.addText("--data", "FILE", kDataHelp, options->data, true);
  line.addWhole("--epochs", "passes over the data; default: 1", options->epochs, 0, INT64_MAX);
  line.addWhole("--steps", "steps instead of epochs; past the end of the data the next epoch begins",
                options->steps, 0, INT64_MAX);
  line.addFlag("--no-shuffle", "takes the data in the order of the file", options->shuffle, false);
  line.addWhole("--rank", "of --world processes that share the data: which one this is, from 0 on",
                options->rank, 0, INT64_MAX);
  line.addWhole("--world", "how many processes share the data; default: 1", options->world, 1, 1 << 20);
  line.addValue("--seed", "N", "of the shuffling; default: 0",
                [options](const std::string &text) { return parseSeed(text).moveTo(options->seed); });
  line.addValue("--lr", "X", "learning rate; default: the artifact's, or the checkpoint's",
                [options](const std::string &text) { return parseRate(text).moveTo(options->lr); });
  line.addValue("--lr-schedule", "SPEC",
                host::listSchedules() + ", with keys behind a colon, or plateau, which follows evaluations",
                [options](const std::string &text) {
                  if (text.substr(0, text.find(':')) == host::Plateau::kName)
                    return host::Plateau::parse(text, options->follow.plateau.emplace());
                  host::Schedule schedule;
                  Status status = host::Schedule::parse(text, schedule);
                  options->schedule = schedule;
                  return status.isOk() ? schedule.check(text) : status;
                });
  line.addText("--eval-data", "FILE", "evaluates on this file after every epoch", options->evalData);
  line.addWeights("--eval-weights", options->evalWeights);
  line.addWhole("--eval-every", "evaluates after every N steps instead", options->evalEvery, 1, INT64_MAX);
  line.addValue(
      "--metric", "NAME",
      "evaluations also compute accuracy, topk:k=5, f1, auc, iou, perplexity, ...; repeatable",
      [options](const std::string &text) {
        options->evalMetrics.push_back(text);
        return host::MetricSet().add(text);
      },
      true);
  line.addText("--metrics", "FILE.jsonl", "one JSON object a step", options->metrics);
  line.addValue("--best", "METRIC:max|min", "which evaluation is the best one; default: loss:min",
                [options](const std::string &text) {
                  Status status = host::Goal::parse(text, options->follow.goal.emplace());
                  const std::string &metric = options->follow.goal->metric;
                  return !status.isOk() || host::Goal::isOfLoss(metric) ? status
                                                                        : host::MetricSet().add(metric);
                });
  line.addWhole("--patience", "ends after N evaluations in a row that are not the best",
                options->follow.patience, 1, INT64_MAX);
  line.addText("--save-best", "FILE.safetensors", "checkpoint of the best evaluation", options->saveBest);
  line.addValue("--watch", "REGEX",
                "smallest, largest and mean value of these tensors, of their gradients, too, in --metrics",
                [options](const std::string &text) { return host::Watch::parse(text, options->watch); });
  line.addWhole("--watch-every",
                "steps between two looks at them; default: " + std::to_string(host::kWatchEvery),
                options->watchEvery, 1, INT64_MAX);
  line.addText("--save", "FILE.safetensors", "checkpoint at the end, and when interrupted", options->save);
  line.addWhole("--save-every", "also saves after every N steps", options->saveEvery, 1, INT64_MAX);
  line.addWhole("--keep", "the last N of them stay, under names with their step", options->keep, 1,
                INT64_MAX);
  line.addText("--load", "FILE.safetensors|DIR",
               "goes on from a checkpoint, or from adapters in files of PEFT", options->load);
  line.addText("--binding", "NAME", "the binding to train; default: the first", options->binding);
  line.addValue(
      "--buckets", "length=ARRAY",
      "every step takes the smallest binding that holds its longest sample; ARRAY of the data has a length "
      "or a mask for each",
      [options](const std::string &text) { return host::Buckets::parse(text, options->buckets); });
  line.addFlag("--stop-on-nan", "fails at the first loss, or update of a weight, that is not finite",
               options->stopOnNan);
  line.addDevice(options->device);
  line.addWhole("--threads", "default: what the artifact allows and the machine has", options->threads, 1,
                256);
  line.addFlag("--profile", "ends with a table of the kernels by time, beside what the machine can do",
               options->profile);
  line.addFlag("--quiet", "no output but errors", options->quiet);
  line.setAction(action, [options] {
    if (options->epochs && options->steps)
      return reportError("--epochs and --steps are both given; one of them says how long to train", 2);
    if (!options->buckets.empty() && !options->binding.empty())
      return reportError(
          "--buckets chooses the binding of every step, and --binding one for all; give one of them", 2);
    if (!options->evalWeights.empty() && options->evalData.empty())
      return reportError("--eval-weights needs --eval-data FILE", 2);
    if (options->rank >= options->world)
      return reportError("--rank " + std::to_string(options->rank) + " must be below --world, which is " +
                             std::to_string(options->world),
                         2);
    if (!options->evalMetrics.empty() && options->evalData.empty())
      return reportError("--metric is computed on --eval-data FILE, which is not given", 2);
    if (options->evalData.empty()) {
      const std::pair<const char *, bool> needing[] = {
          {"--eval-every", options->evalEvery > 0},
          {"--best", options->follow.goal.has_value()},
          {"--patience", options->follow.patience > 0},
          {"--save-best", !options->saveBest.empty()},
          {"--lr-schedule plateau", options->follow.plateau.has_value()}};
      for (const auto &[flag, isGiven] : needing)
        if (isGiven)
          return reportError(std::string(flag) + " needs evaluations; give --eval-data FILE", 2);
    }
    if (!options->watch.isEmpty() && options->metrics.empty())
      return reportError("--watch writes into --metrics FILE.jsonl, which is not given", 2);
    if (options->watchEvery && options->watch.isEmpty())
      return reportError("--watch-every needs --watch REGEX", 2);
    if (options->keep && !options->saveEvery)
      return reportError("--keep is for the checkpoints of --save-every N, which is not given", 2);
    if (options->saveEvery && options->save.empty())
      return reportError("--save-every needs --save FILE", 2);
    if (int refused = checkDevice(options->device, options->threads, options->profile))
      return refused;
    return finish(host::train(*options, host::interruption));
  });
}

} // namespace ortc::tool
