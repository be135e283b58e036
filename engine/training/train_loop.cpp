// The training loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include <cmath>

#include "engine/checkpoints/kept_checkpoints.h"
#include "support/Elements.h"
#include "support/Text.h"

namespace ortc::engine {

Status Trainer::train() {
  const Raised isIn(training);
  started = epochStarted = Clock::now();
  if (parts.profiler)
    parts.profiler->start(stepsWanted, artifact.readKernels().kernels.size());
  Status status = loop();
  feeder.stop();
  if (!status.isOk())
    return keep(status);
  if (int64_t waiting = position.step % accumulate; waiting && stepsDone)
    observer.note("the gradients of the last " + formatCount(waiting, "step") +
                  " wait for an update, which comes after " + std::to_string(accumulate) +
                  (options.save.empty() ? "; without --save they are lost" : "; they are in the checkpoint"));
  const bool isCut = isStopped && stepsDone < stepsWanted;
  if (interrupted)
    ORTC_TRY(observer.tell("interrupted", {{"step", position.step}}));
  else if (parts.evalEntry && evaluatedStep != position.step && !isCut)
    if (status = evaluateNow(/*isDue=*/false); !status.isOk())
      return keep(status);
  ORTC_TRY(endEpoch());
  return options.save.empty() || savedStep == position.step ? Status() : save();
}

Status Trainer::report() {
  double seconds = std::chrono::duration<double>(Clock::now() - started).count(), skipped = skippedBefore;
  if (hasLossScale)
    ORTC_TRY(session.getScalar(kSkipped, skipped));
  if (!options.saveBest.empty() && follower.getBestStep() < 0)
    observer.note("--save-best has saved nothing: no evaluation that was due gave a finite " +
                  follower.getGoal().metric);
  observer.line(std::string(interrupted              ? "interrupted"
                            : follower.isExhausted() ? "stopped early"
                                                     : "done") +
                ": " + formatCount(stepsDone, "step") + " in " + formatShort(seconds, 3) + " s" +
                (stepsDone ? " (" + formatShort(seconds * 1e3 / double(stepsDone), 3) +
                                 " ms each), last loss " + formatShort(lastLoss, 5)
                           : "") +
                (hasLossScale ? ", " + formatCount(int64_t(skipped - skippedBefore), "update") +
                                    " skipped for gradients that are not finite"
                              : "") +
                (options.save.empty() ? "" : "; saved to " + options.save));
  if (options.save.empty() && stepsDone)
    observer.note(options.saveBest.empty() || follower.getBestStep() < 0
                      ? "the trained weights are gone with this run; --save FILE.safetensors keeps them"
                      : "weights of the last step are gone with this run, those of step " +
                            std::to_string(follower.getBestStep()) + " are in " + options.saveBest +
                            "; --save FILE.safetensors keeps the last ones, too");
  return Status();
}

/// A run that was interrupted in an evaluation has left it to this one.
Status Trainer::loop() {
  if (follower.isActive() && position.step > 0 && stepsWanted > 0 && isEvaluationDue() &&
      follower.getEvaluatedStep() != position.step)
    ORTC_TRY(evaluateNow(/*isDue=*/true));
  return parts.data ? trainData() : trainStream();
}

Status Trainer::trainData() {
  startFeeding();
  while (stepsDone < stepsWanted && !hasEnded()) {
    if (position.slice == getSlices()) {
      ++position.epoch;
      position.slice = 0;
    }
    hasEndedEpoch = false;
    ORTC_TRY(trainStep());
    ORTC_TRY(followStep());
  }
  return Status();
}

/// An evaluation, the end of an epoch and a checkpoint, each where it is due after a step.
Status Trainer::followStep() {
  if (isEvaluationDue())
    ORTC_TRY(evaluateNow(/*isDue=*/true));
  if (position.slice == getSlices()) // never in a stream
    ORTC_TRY(endEpoch());
  return !options.save.empty() && options.saveEvery && stepsDone % options.saveEvery == 0 ? save() : Status();
}

/// An epoch that ends early is over: there is no way back into it.
Status Trainer::trainStream() {
  while (stepsDone < stepsWanted && position.epoch != lastEpoch && !hasEnded()) {
    ORTC_TRY(parts.stream->begin(position.epoch));
    const int64_t before = stepsDone;
    while (stepsDone < stepsWanted && !hasEnded()) {
      const Entry *chosen = nullptr;
      ORTC_TRY(parts.stream->next(session, updatesNext() ? ORTC_ENTRY_TRAIN : ORTC_ENTRY_ACCUMULATE, chosen));
      if (!chosen)
        break;
      double rate = 0;
      ORTC_TRY(chooseRate(rate));
      ORTC_TRY(performStep(*chosen, rate, Clock::now()));
      ORTC_TRY(followStep());
    }
    if (stepsDone == before)
      return Status::refusal("the data have no batch in an epoch; an iterator gives its batches only once");
    if (parts.evalEntry && !options.evalEvery)
      ORTC_TRY(evaluateNow(/*isDue=*/true));
    ORTC_TRY(endEpoch());
    ++position.epoch;
    position.slice = 0;
  }
  return Status();
}

/// From the next step on.
void Trainer::startFeeding() {
  // Bytes and steps that are read ahead, where these are several: a thread may wait a while for a processor.
  constexpr size_t kAhead = 4 << 20, kMostAhead = 64;
  size_t bytes = 1;
  for (size_t i = 0; i < parts.entry->inputs.size(); ++i)
    bytes += parts.data->getInputBytes(i);
  feeder.start(std::min(kAhead / bytes, kMostAhead), stepsWanted - stepsDone,
               [this, reading = std::make_shared<Reading>(Reading{position.epoch, position.slice})](
                   Feed &feed) { return read(*reading, feed); });
}

/// On the feeder's thread.
Status Trainer::read(Reading &reading, Feed &feed) const {
  const Batches &data = *parts.data;
  if (reading.slice == data.getSlices()) {
    ++reading.epoch;
    reading.slice = 0;
  }
  if (position.shuffle && reading.orderedEpoch != reading.epoch) {
    reading.order = data.makeOrder(position.seed, reading.epoch);
    reading.orderedEpoch = reading.epoch;
  }
  const Order *order = position.shuffle ? &*reading.order : nullptr;
  feed.entry = parts.buckets ? &parts.buckets->choose(data, reading.slice, order) : parts.entry;
  return fill(data, reading.slice++, order, feed);
}

/// The rate that the next step trains with, which the session has then; with a schedule of the artifact the one that it
/// computes from that.
Status Trainer::chooseRate(double &rate) {
  ORTC_TRY(followRate());
  if (options.rate) {
    ORTC_TRY(options.rate(position.step, rate));
    position.lr = rate;
  } else {
    rate = schedule.getRate(position.lr, position.step);
  }
  if (rate != setRate) {
    ORTC_TRY(session.setScalar("lr", rate));
    setRate = rate;
    ORTC_TRY(session.getScalar("lr", knownRate));
  }
  if (artifact.getSchedule()) {
    double updates = 0;
    ORTC_TRY(session.getScalar(updateCounter, updates));
    rate = artifact.getSchedule()->getRate(rate, int64_t(updates));
  }
  return Status();
}

Status Trainer::trainStep() {
  double rate = 0;
  ORTC_TRY(chooseRate(rate));
  auto begin = Clock::now();
  const Feed *feed = nullptr;
  if (Status status = feeder.take(feed); !status.isOk())
    return interrupted ? Status() : status; // reading ends early then
  ORTC_TRY(session.feed(*feed));
  return performStep(*feed->entry, rate, begin);
}

/// Of an entry whose inputs the session has. `begin`: of what the step takes, which the data may be part of.
Status Trainer::performStep(const Entry &chosen, double rate, Clock::time_point begin) {
  ortc_status told = ORTC_OK;
  const bool updates = updatesNext();
  auto fed = Clock::now();
  if (parts.profiler)
    parts.profiler->beginStep();
  bool isWatched =
      parts.watch && (position.step + 1) % (options.watchEvery ? options.watchEvery : kWatchEvery) == 0;
  const Entry *gradients =
      isWatched && !accumulateEntry ? artifact.findEntry(ORTC_ENTRY_GRADIENTS, chosen.binding) : nullptr;
  const Entry *update = gradients ? artifact.findEntry(ORTC_ENTRY_UPDATE, chosen.binding) : nullptr;
  const Entry &taken = update    ? *update
                       : updates ? chosen
                                 : *artifact.findEntry(ORTC_ENTRY_ACCUMULATE, chosen.binding);
  Status status = update ? parts.watch->step(session, *gradients, *update, options.stopOnNan, lastLoss, &told)
                         : session.step(taken, lastLoss, &told);
  if (!status.isOk())
    return explain(status, told, chosen);
  auto end = Clock::now();
  if (parts.profiler)
    parts.profiler->endStep(std::chrono::duration<double>(fed - begin).count(),
                            std::chrono::duration<double>(end - fed).count());
  ++position.step;
  ++position.slice;
  ++stepsDone;
  ++epochSteps;
  // of --accumulate by=tokens, where a step may have none
  TensorView labels = session.view(taken, "loss.count");
  epochLoss.add(lastLoss, labels.type == DataType::None ? 1 : loadAsDouble(labels.type, labels.data));
  StepEvent event{position.step,
                  position.epoch,
                  lastLoss,
                  rate,
                  std::chrono::duration<double, std::milli>(end - begin).count(),
                  {}};
  ORTC_TRY(describeStep(taken, event.numbers));
  ORTC_TRY(observer.tellStep(event));
  if (isWatched) {
    EventFields seen = {{"step", position.step}};
    ORTC_TRY(parts.watch->describe(session, seen));
    ORTC_TRY(observer.tell("watch", seen));
  }
  if (std::isfinite(lastLoss))
    losses.add(lastLoss, position.step);
  else if (failedStep < 0)
    ORTC_TRY(warnOfLoss(chosen));
  if (options.stopOnNan && updates)
    ORTC_TRY(checkWeights(chosen));
  observer.progress({stepsDone, stepsWanted, position.step, event.epoch, lastLoss, rate});
  return Status();
}

/// What there is to say of a step beside its loss.
Status Trainer::describeStep(const Entry &taken, EventFields &fields) {
  if (parts.buckets)
    fields.push_back({"binding", taken.bindingName});
  if (!parts.hasMetrics)
    return Status();
  for (const std::string &name : artifact.getStepOutputs())
    if (TensorView number = session.view(taken, name); number.type != DataType::None)
      fields.push_back({name, loadAsDouble(number.type, number.data)});
  for (const LossInfo &loss : artifact.getLosses())
    if (TensorView value = loss.value.empty() ? TensorView() : session.view(taken, loss.value);
        value.type != DataType::None)
      fields.push_back({loss.value, loadAsDouble(value.type, value.data)});
  if (!hasLossScale)
    return Status();
  double scale = 0, skipped = 0;
  ORTC_TRY(session.getScalar(kLossScale, scale));
  ORTC_TRY(session.getScalar(kSkipped, skipped));
  fields.push_back({kLossScale, scale});
  fields.push_back({"skipped", skipped});
  return Status();
}

/// The step whose data are those of `slice`.
void Trainer::findFailed(const Entry &taken, int64_t slice, Failed &failed) {
  feeder.stop(); // it has the data
  if (parts.data)
    failed.order = parts.data->makeOrder(position.seed, position.epoch);
  failed.step.emplace(FailedStep{session, taken, artifact.getLosses(), parts.data, slice,
                                 parts.data && position.shuffle ? &*failed.order : nullptr});
}

/// " (step 3, epoch 0, slice 2 of train.npz)".
std::string Trainer::describePlace(int64_t step, int64_t slice) const {
  return " (step " + std::to_string(step) + ", epoch " + std::to_string(position.epoch) + ", slice " +
         std::to_string(slice) + " of " + options.data + ")";
}

/// Once: what comes after it is seldom finite again.
Status Trainer::warnOfLoss(const Entry &taken) {
  failedStep = position.step;
  Failed failed;
  findFailed(taken, position.slice - 1, failed);
  NotFiniteStep met{*failed.step, finite, losses};
  met.hasUpdates = stepsDone > 1;
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  observer.warn("the loss is " + formatShort(lastLoss) + " in step " + std::to_string(position.step) +
                " (epoch " + std::to_string(position.epoch) + "); " +
                (losses.isEmpty() ? "no step of this run had a finite one"
                                  : "the last finite one was " + formatShort(losses.last, 5) + " in step " +
                                        std::to_string(losses.lastStep)) +
                reason);
  if (parts.data)
    startFeeding();
  return observer.tell("not_finite", {{"step", position.step}});
}

/// After an update: its loss is that of the weights before, so theirs tells of it one step late, or never.
Status Trainer::checkWeights(const Entry &taken) {
  std::optional<BadTensor> bad;
  ORTC_TRY(finite.checkModel(session, bad));
  if (!bad)
    return Status();
  isNotFinite = true;
  Failed failed;
  findFailed(taken, position.slice - 1, failed);
  NotFiniteStep met{*failed.step, finite, losses, bad};
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  ORTC_TRY(observer.tell("not_finite", {{"step", position.step}, {"tensor", bad->name}}));
  return Status::failure("the weights are not finite after the update of step " +
                         std::to_string(position.step) + " (epoch " + std::to_string(position.epoch) +
                         ", slice " + std::to_string(position.slice - 1) + " of " + options.data +
                         "): " + bad->describe() + reason + "; " + describeKept());
}

/// Of an epoch, or what there is of one.
Status Trainer::endEpoch() {
  auto now = Clock::now();
  const EpochEnd end{getLastEpoch(),
                     epochSteps,
                     getSlices(),
                     epochLoss.mean(),
                     std::chrono::duration<double>(now - epochStarted).count(),
                     evaluation,
                     parts.stream || position.slice == getSlices()};
  hasEndedEpoch |= end.isWhole;
  epochStarted = now;
  epochSteps = 0;
  epochLoss = WeightedSum();
  evaluation.clear();
  return end.steps || !end.evaluation.empty() ? observer.endEpoch(end) : Status();
}

/// What was trained before a failure that is not the training's own: the data end early, a disk is full.
Status Trainer::keep(const Status &failure) {
  if (options.save.empty() || stepsDone == 0 || savedStep == position.step || isNotFinite || isAbandoned)
    return failure;
  Status saved = saveCheckpoint();
  if (saved.getMessage() == failure.getMessage()) // that was the failure
    return failure;
  return Status::failure(failure.getMessage() + "; " +
                         (saved.isOk() ? options.save + " holds step " + std::to_string(savedStep)
                                       : "nor could it be saved: " + saved.getMessage()));
}

/// Adds to a failed step where in the data and in the training it happened.
Status Trainer::explain(const Status &status, ortc_status told, const Entry &taken) {
  Failed failed;
  findFailed(taken, position.slice, failed);
  std::string where =
      describePlace(position.step + 1, position.slice) + describeIndex(status.getMessage(), *failed.step);
  isNotFinite = told == ORTC_E_NOT_FINITE;
  if (!isNotFinite)
    return Status::failure(status.getMessage() + where);
  NotFiniteStep met{*failed.step, finite, losses};
  met.isUntouched = true;
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  ORTC_TRY(observer.tell("not_finite", {{"step", position.step + 1}}));
  return Status::failure("the loss is not finite" + where + reason +
                         "; no parameter was changed by this step, " + describeKept());
}

/// The state of the training when it ends for numbers that are not finite.
std::string Trainer::describeKept() const {
  if (savedStep >= 0)
    return options.save + " holds step " + std::to_string(savedStep);
  return std::string("nothing was saved") +
         (stepsDone > 0 && !options.saveEvery ? "; --save with --save-every N keeps what comes before" : "");
}

Metadata Trainer::describePosition() const {
  Position stored = position;
  if (parts.stream) { // there is no way back into an epoch: the next one begins
    stored.epoch += stored.slice > 0;
    stored.slice = 0;
  }
  Metadata metadata = formatPosition(stored);
  follower.describe(metadata);
  return metadata;
}

/// A file has weights to go on from: those that are not finite do not take the place of others.
Status Trainer::saveFile(const std::string &path) {
  std::optional<BadTensor> bad;
  isNotFinite = false;
  ORTC_TRY(followRate());
  ORTC_TRY(finite.checkSaved(session, bad));
  if (!bad)
    return session.save(path, describePosition());
  isNotFinite = true;
  double largest = 0;
  ORTC_TRY(finite.findLargest(session, largest));
  std::string reason = describeGrowth(finite, losses, largest);
  if (reason.empty())
    reason = options.stopOnNan ? "" : "; --stop-on-nan ends at the step that does it, and says why";
  return Status::failure(
      path + ": step " + std::to_string(position.step) + " is not saved: " + bad->describe() +
      (failedStep < 0 ? "" : ", and the loss is not finite since step " + std::to_string(failedStep)) +
      reason + "; " + describeKept());
}

Status Trainer::saveCheckpoint() {
  ORTC_TRY(saveFile(options.save));
  savedStep = position.step;
  return options.keep ? keepCheckpoint(options.save, savedStep, options.keep, loadedFrom) : Status();
}

Status Trainer::save() {
  ORTC_TRY(saveCheckpoint());
  return observer.tell("save", {{"step", position.step}, {"file", options.save}});
}

} // namespace ortc::engine
