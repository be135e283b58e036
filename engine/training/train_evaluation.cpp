// Evaluations in a training, and what follows from them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include "engine/session/averages.h"
#include "support/Text.h"

namespace ortc::engine {

/// By the step of the training, not of the run: runs may end anywhere.
bool Trainer::isEvaluationDue() const {
  return evalEntry &&
         (options.evalEvery ? position.step % options.evalEvery == 0 : position.slice == data.getSlices());
}

/// One that is not due, at the end of a run, is shown and counts for nothing else: an uninterrupted run has none there.
Status Trainer::evaluateNow(bool isDue) {
  Evaluation result;
  AveragesInPlace averages;
  ORTC_TRY(averages.take(artifact, session, options.evalWeights));
  bool isAveraged = averages.isTaken();
  Status evaluated = evaluate(
      session, artifact, *evalEntry, evalData, evalData.getSlices(), [this](int64_t) { return !interrupted; },
      evalMetrics, result);
  ORTC_TRY(averages.giveBack(session));
  ORTC_TRY(evaluated);
  if (interrupted) // and half of an evaluation is none
    return Status();
  evaluatedStep = position.step;
  int64_t epoch = position.slice == 0 && position.epoch > 0 ? position.epoch - 1 : position.epoch;
  std::vector<std::pair<std::string, std::string>> fields = {
      {"step", std::to_string(position.step)},
      {"epoch", std::to_string(epoch)},
      {"eval_loss", formatJsonNumber(result.getLoss())}};
  if (isAveraged)
    fields.push_back({"weights", formatJsonString(options.evalWeights)});
  for (const LossMeasure &measure : result.losses) {
    if (!measure.name.empty())
      fields.push_back({measure.key("eval_loss"), formatJsonNumber(measure.sum.mean())});
    if (measure.accuracy)
      fields.push_back({measure.key("accuracy"), formatJsonNumber(measure.getAccuracy())});
  }
  for (const auto &[name, value] : result.metrics)
    fields.push_back({name, formatJsonNumber(value)});
  std::string text = "eval " + result.formatLosses([](double value) { return formatShort(value, 5); }) +
                     result.formatMetrics();
  if (!result.note.empty())
    reporter.note(result.note);
  if (options.evalEvery)
    reporter.line("step " + std::to_string(position.step) + "  " + text);
  else
    evaluation = text; // of the line of the epoch
  ORTC_TRY(metrics.writeEvent("eval", fields));
  if (!isDue || !follower.isActive())
    return Status();
  if (!options.evalEvery)
    endEpoch(); // its line has the evaluation, which others speak of
  return follow(result);
}

Status Trainer::follow(const Evaluation &result) {
  double rate = position.lr, value = result.find(follower.getGoal().metric);
  const std::string step = std::to_string(position.step);
  bool isBest = follower.add(value, position.step, position.lr);
  if (position.lr != rate) {
    reporter.line("step " + step + ": the learning rate falls from " + formatShort(rate) + " to " +
                  formatShort(position.lr));
    ORTC_TRY(metrics.writeEvent("plateau", {{"step", step}, {"lr", formatJsonNumber(position.lr)}}));
  }
  if (isBest) {
    MetricsFile::Fields fields = {{"step", step},
                                  {"metric", formatJsonString(follower.getGoal().metric)},
                                  {"value", formatJsonNumber(value)}};
    if (!options.saveBest.empty()) {
      ORTC_TRY(saveFile(options.saveBest));
      fields.push_back({"file", formatJsonString(options.saveBest)});
    }
    ORTC_TRY(metrics.writeEvent("best", fields));
  }
  if (!follower.isExhausted())
    return Status();
  reporter.line("step " + step + ": the training ends, as " +
                formatCount(options.follow.patience, "evaluation") + " had no better " +
                follower.getGoal().metric +
                (follower.getBestStep() < 0 ? "; none was finite"
                                            : " than " + formatShort(follower.getBest(), 6) + " in step " +
                                                  std::to_string(follower.getBestStep())));
  return metrics.writeEvent("early_stop",
                            {{"step", step}, {"best_step", std::to_string(follower.getBestStep())}});
}

} // namespace ortc::engine
