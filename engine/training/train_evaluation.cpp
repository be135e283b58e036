// Evaluations in a training, and what follows from them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include "engine/session/averages.h"
#include "support/Text.h"

namespace ortc::engine {

/// By the step of the training, not of the run: runs may end anywhere.
bool Trainer::isEvaluationDue() const {
  return parts.evalEntry &&
         (options.evalEvery ? position.step % options.evalEvery == 0 : position.slice == getSlices());
}

Status Trainer::evaluateWith(const Entry &entry, SliceSource &source, const std::string &weights,
                             Evaluation &result, bool &isAveraged) {
  const Raised isIn(evaluating);
  AveragesInPlace averages;
  ORTC_TRY(averages.take(artifact, session, weights));
  isAveraged = averages.isTaken();
  Status stopped;
  Status evaluated = evaluate(
      session, artifact, entry, source,
      [&] {
        stopped = observer.poll();
        return stopped.isOk() && !interrupted;
      },
      parts.evalMetrics, result);
  ORTC_TRY(averages.giveBack(session));
  ORTC_TRY(evaluated);
  return stopped;
}

/// One that is not due, at the end of a run, is shown and counts for nothing else: an uninterrupted run has none there.
Status Trainer::evaluateNow(bool isDue) {
  Evaluation result;
  bool isAveraged = false;
  const std::unique_ptr<SliceSource> source = parts.evalSlices(position.epoch);
  ORTC_TRY(evaluateWith(*parts.evalEntry, *source, options.evalWeights, result, isAveraged));
  if (interrupted) // and half of an evaluation is none
    return Status();
  evaluatedStep = position.step;
  EventFields fields = {{"step", position.step}, {"epoch", getLastEpoch()}, {"eval_loss", result.getLoss()}};
  if (isAveraged)
    fields.push_back({"weights", options.evalWeights});
  for (const LossMeasure &measure : result.losses) {
    if (!measure.name.empty())
      fields.push_back({measure.key("eval_loss"), measure.sum.mean()});
    if (measure.accuracy)
      fields.push_back({measure.key("accuracy"), measure.getAccuracy()});
  }
  for (const auto &[name, value] : result.metrics)
    fields.push_back({name, value});
  std::string text = "eval " + result.formatLosses([](double value) { return formatShort(value, 5); }) +
                     result.formatMetrics();
  if (!result.note.empty())
    observer.note(result.note);
  if (options.evalEvery)
    observer.line("step " + std::to_string(position.step) + "  " + text);
  else
    evaluation = text; // of the line of the epoch
  ORTC_TRY(observer.tell("eval", fields));
  if (!isDue || !follower.isActive())
    return Status();
  if (!options.evalEvery)
    ORTC_TRY(endEpoch()); // its line has the evaluation, which others speak of
  return follow(result);
}

Status Trainer::follow(const Evaluation &result) {
  double rate = position.lr, value = result.find(follower.getGoal().metric);
  const std::string step = std::to_string(position.step);
  bool isBest = follower.add(value, position.step, position.lr);
  if (position.lr != rate) {
    observer.line("step " + step + ": the learning rate falls from " + formatShort(rate) + " to " +
                  formatShort(position.lr));
    ORTC_TRY(observer.tell("plateau", {{"step", position.step}, {"lr", position.lr}}));
  }
  if (isBest) {
    EventFields fields = {{"step", position.step}, {"metric", follower.getGoal().metric}, {"value", value}};
    if (!options.saveBest.empty()) {
      ORTC_TRY(saveFile(options.saveBest));
      fields.push_back({"file", options.saveBest});
    }
    ORTC_TRY(observer.tell("best", fields));
  }
  if (!follower.isExhausted())
    return Status();
  observer.line("step " + step + ": the training ends, as " +
                formatCount(options.follow.patience, "evaluation") + " had no better " +
                follower.getGoal().metric +
                (follower.getBestStep() < 0 ? "; none was finite"
                                            : " than " + formatShort(follower.getBest(), 6) + " in step " +
                                                  std::to_string(follower.getBestStep())));
  return observer.tell("early_stop", {{"step", position.step}, {"best_step", follower.getBestStep()}});
}

} // namespace ortc::engine
