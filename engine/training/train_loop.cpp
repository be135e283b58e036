// The training loop of `ortc run`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include <cmath>

#include "engine/checkpoints/kept_checkpoints.h"
#include "support/Convert.h"
#include "support/Text.h"

namespace ortc::engine {

Status Trainer::run() {
  if (Status opened = open(); !opened.isOk()) {
    if (!interrupted)
      return opened;
    reporter.line("interrupted before the first step: " + opened.getMessage());
    return Status();
  }
  ORTC_TRY(resume());
  ORTC_TRY(planRates());
  ORTC_TRY(finite.begin(artifact, session));
  if (const std::optional<BadTensor> &bad = finite.getBadAtFirst())
    reporter.warn((options.load.empty() ? artifact.getPath() : options.load) + ": " + bad->describe());
  if (std::string shuffling = data.describeShuffling();
      position.shuffle && stepsWanted > 0 && !shuffling.empty())
    reporter.note(shuffling);
  ORTC_TRY(metrics.open(options.metrics,
                        /*append=*/!options.load.empty())); // nothing refuses the run from here on
  if (Status status = loop(); !status.isOk())
    return keep(status);
  if (int64_t waiting = position.step % accumulate; waiting && stepsDone)
    reporter.note("the gradients of the last " + formatCount(waiting, "step") +
                  " wait for an update, which comes after " + std::to_string(accumulate) +
                  (options.save.empty() ? "; without --save they are lost" : "; they are in the checkpoint"));
  if (interrupted)
    ORTC_TRY(metrics.writeEvent("interrupted", {{"step", std::to_string(position.step)}}));
  else if (evalEntry && evaluatedStep != position.step)
    if (Status status = evaluateNow(/*isDue=*/false); !status.isOk())
      return keep(status);
  endEpoch();
  if (!options.save.empty() && savedStep != position.step)
    ORTC_TRY(save());
  double seconds = std::chrono::duration<double>(Clock::now() - started).count(), skipped = skippedBefore;
  if (hasLossScale)
    ORTC_TRY(session.getScalar(kSkipped, skipped));
  if (!options.saveBest.empty() && follower.getBestStep() < 0)
    reporter.note("--save-best has saved nothing: no evaluation that was due gave a finite " +
                  follower.getGoal().metric);
  reporter.line(std::string(interrupted              ? "interrupted"
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
    reporter.note(options.saveBest.empty() || follower.getBestStep() < 0
                      ? "the trained weights are gone with this run; --save FILE.safetensors keeps them"
                      : "weights of the last step are gone with this run, those of step " +
                            std::to_string(follower.getBestStep()) + " are in " + options.saveBest +
                            "; --save FILE.safetensors keeps the last ones, too");
  if (options.profile && stepsDone == 0)
    reporter.note("--profile has nothing to show: no step was run");
  return options.profile && stepsDone ? reportProfile() : Status();
}

Status Trainer::loop() {
  if (options.profile)
    profiler.start(stepsWanted, artifact.readKernels().kernels.size());
  started = epochStarted = Clock::now();
  // A run that was interrupted in an evaluation has left it to this one.
  if (follower.isActive() && position.step > 0 && stepsWanted > 0 && isEvaluationDue() &&
      follower.getEvaluatedStep() != position.step)
    ORTC_TRY(evaluateNow(/*isDue=*/true));
  startFeeding();
  while (stepsDone < stepsWanted && !interrupted && !follower.isExhausted()) {
    if (position.slice == data.getSlices()) {
      ++position.epoch;
      position.slice = 0;
    }
    ORTC_TRY(trainStep());
    if (isEvaluationDue())
      ORTC_TRY(evaluateNow(/*isDue=*/true));
    if (position.slice == data.getSlices())
      endEpoch();
    if (!options.save.empty() && options.saveEvery && stepsDone % options.saveEvery == 0)
      ORTC_TRY(save());
  }
  feeder.stop();
  return Status();
}

/// From the next step on.
void Trainer::startFeeding() {
  // Bytes and steps that are read ahead, where these are several: a thread may wait a while for a processor.
  constexpr size_t kAhead = 4 << 20, kMostAhead = 64;
  size_t bytes = 1;
  for (size_t i = 0; i < entry->inputs.size(); ++i)
    bytes += data.getInputBytes(i);
  feeder.start(std::min(kAhead / bytes, kMostAhead), stepsWanted - stepsDone,
               [this, reading = std::make_shared<Reading>(Reading{position.epoch, position.slice})](
                   Feed &feed) { return read(*reading, feed); });
}

/// On the feeder's thread.
Status Trainer::read(Reading &reading, Feed &feed) const {
  if (reading.slice == data.getSlices()) {
    ++reading.epoch;
    reading.slice = 0;
  }
  if (position.shuffle && reading.orderedEpoch != reading.epoch) {
    reading.order = data.makeOrder(position.seed, reading.epoch);
    reading.orderedEpoch = reading.epoch;
  }
  const Order *order = position.shuffle ? &*reading.order : nullptr;
  feed.entry = buckets ? &buckets->choose(data, reading.slice, order) : entry;
  return fill(data, reading.slice++, order, feed);
}

Status Trainer::trainStep() {
  double rate = schedule.getRate(position.lr, position.step);
  if (rate != setRate) {
    ORTC_TRY(session.setScalar("lr", rate));
    setRate = rate;
  }
  if (artifact.getSchedule()) { // which computes it from that
    double updates = 0;
    ORTC_TRY(session.getScalar(updateCounter, updates));
    rate = artifact.getSchedule()->getRate(rate, int64_t(updates));
  }
  auto begin = Clock::now();
  const Feed *feed = nullptr;
  if (Status status = feeder.take(feed); !status.isOk())
    return interrupted ? Status() : status; // reading ends early then
  const Entry &chosen = *feed->entry;
  ORTC_TRY(session.feed(*feed));
  ortc_status told = ORTC_OK;
  bool updates = !accumulateEntry || (position.step + 1) % accumulate == 0;
  auto fed = Clock::now();
  if (options.profile)
    profiler.beginStep();
  bool isWatched = !watch.isEmpty() && (position.step + 1) % watchEvery == 0;
  const Entry *gradients = isWatched && !accumulateEntry ? findBeside(ORTC_ENTRY_GRADIENTS, chosen) : nullptr;
  const Entry *update = gradients ? findBeside(ORTC_ENTRY_UPDATE, chosen) : nullptr;
  const Entry &taken = update ? *update : updates ? chosen : *findBeside(ORTC_ENTRY_ACCUMULATE, chosen);
  Status status = update ? watch.step(session, *gradients, *update, options.stopOnNan, lastLoss, &told)
                         : session.step(taken, lastLoss, &told);
  if (!status.isOk())
    return explain(status, told, chosen);
  auto end = Clock::now();
  if (options.profile)
    profiler.endStep(std::chrono::duration<double>(fed - begin).count(),
                     std::chrono::duration<double>(end - fed).count());
  double milliseconds = std::chrono::duration<double, std::milli>(end - begin).count();
  int64_t epoch = position.epoch;
  ++position.step;
  ++position.slice;
  ++stepsDone;
  ++epochSteps;
  // of --accumulate by=tokens, where a step may have none
  TensorView labels = session.view(taken, "loss.count");
  epochLoss.add(lastLoss, labels.type == DataType::None ? 1 : loadAsDouble(labels.type, labels.data));
  MetricsFile::Fields fields;
  ORTC_TRY(describeStep(taken, fields));
  ORTC_TRY(metrics.writeStep(position.step, epoch, lastLoss, rate, milliseconds, fields));
  if (isWatched) {
    MetricsFile::Fields seen = {{"step", std::to_string(position.step)}};
    ORTC_TRY(watch.describe(session, seen));
    ORTC_TRY(metrics.writeEvent("watch", seen));
  }
  if (std::isfinite(lastLoss))
    losses.add(lastLoss, position.step);
  else if (failedStep < 0)
    ORTC_TRY(warnOfLoss(chosen));
  if (options.stopOnNan && updates)
    ORTC_TRY(checkWeights(chosen));
  reporter.progress({stepsDone, stepsWanted, position.step, epoch, lastLoss, rate});
  return Status();
}

/// What the metrics say of a step beside its loss.
Status Trainer::describeStep(const Entry &taken, MetricsFile::Fields &fields) {
  if (buckets)
    fields.push_back({"binding", formatJsonString(taken.bindingName)});
  if (options.metrics.empty())
    return Status();
  for (const std::string &name : artifact.getStepOutputs())
    if (TensorView number = session.view(taken, name); number.type != DataType::None)
      fields.push_back({name, formatJsonNumber(loadAsDouble(number.type, number.data))});
  for (const LossInfo &loss : artifact.getLosses())
    if (TensorView value = loss.value.empty() ? TensorView() : session.view(taken, loss.value);
        value.type != DataType::None)
      fields.push_back({loss.value, formatJsonNumber(loadAsDouble(value.type, value.data))});
  if (!hasLossScale)
    return Status();
  double scale = 0, skipped = 0;
  ORTC_TRY(session.getScalar(kLossScale, scale));
  ORTC_TRY(session.getScalar(kSkipped, skipped));
  fields.push_back({kLossScale, formatJsonNumber(scale)});
  fields.push_back({"skipped", formatJsonNumber(skipped)});
  return Status();
}

/// Once: what comes after it is seldom finite again.
Status Trainer::warnOfLoss(const Entry &taken) {
  failedStep = position.step;
  feeder.stop(); // it has the data
  Order order = data.makeOrder(position.seed, position.epoch);
  const FailedStep step{
      session, taken, artifact.getLosses(), data, position.slice - 1, position.shuffle ? &order : nullptr};
  NotFiniteStep met{step, finite, losses};
  met.hasUpdates = stepsDone > 1;
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  reporter.warn("the loss is " + formatShort(lastLoss) + " in step " + std::to_string(position.step) +
                " (epoch " + std::to_string(position.epoch) + "); " +
                (losses.isEmpty() ? "no step of this run had a finite one"
                                  : "the last finite one was " + formatShort(losses.last, 5) + " in step " +
                                        std::to_string(losses.lastStep)) +
                reason);
  startFeeding();
  return metrics.writeEvent("not_finite", {{"step", std::to_string(position.step)}});
}

/// After an update: its loss is that of the weights before, so theirs tells of it one step late, or never.
Status Trainer::checkWeights(const Entry &taken) {
  std::optional<BadTensor> bad;
  ORTC_TRY(finite.checkModel(session, bad));
  if (!bad)
    return Status();
  isNotFinite = true;
  feeder.stop(); // it has the data
  Order order = data.makeOrder(position.seed, position.epoch);
  const FailedStep step{
      session, taken, artifact.getLosses(), data, position.slice - 1, position.shuffle ? &order : nullptr};
  NotFiniteStep met{step, finite, losses, bad};
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  ORTC_TRY(metrics.writeEvent(
      "not_finite", {{"step", std::to_string(position.step)}, {"tensor", formatJsonString(bad->name)}}));
  return Status::failure("the weights are not finite after the update of step " +
                         std::to_string(position.step) + " (epoch " + std::to_string(position.epoch) +
                         ", slice " + std::to_string(position.slice - 1) + " of " + options.data +
                         "): " + bad->describe() + reason + "; " + describeKept());
}

/// Of an epoch, or what there is of one.
void Trainer::endEpoch() {
  int64_t epoch = position.slice == 0 && position.epoch > 0 ? position.epoch - 1 : position.epoch;
  auto now = Clock::now();
  if (epochSteps || !evaluation.empty())
    reporter.epoch({epoch, epochSteps, data.getSlices(), epochLoss.mean(),
                    std::chrono::duration<double>(now - epochStarted).count(), evaluation});
  epochStarted = now;
  epochSteps = 0;
  epochLoss = WeightedSum();
  evaluation.clear();
}

/// What was trained before a failure that is not the training's own: the data end early, a disk is full.
Status Trainer::keep(const Status &failure) {
  if (options.save.empty() || stepsDone == 0 || savedStep == position.step || isNotFinite)
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
  feeder.stop(); // it has the data
  Order order = data.makeOrder(position.seed, position.epoch);
  const FailedStep step{session, taken,          artifact.getLosses(),
                        data,    position.slice, position.shuffle ? &order : nullptr};
  std::string place = describeIndex(status.getMessage(), step);
  std::string where = " (step " + std::to_string(position.step + 1) + ", epoch " +
                      std::to_string(position.epoch) + ", slice " + std::to_string(position.slice) + " of " +
                      options.data + ")" + place;
  isNotFinite = told == ORTC_E_NOT_FINITE;
  if (!isNotFinite)
    return Status::failure(status.getMessage() + where);
  NotFiniteStep met{step, finite, losses};
  met.isUntouched = true;
  std::string reason;
  ORTC_TRY(explainNotFinite(met, reason));
  ORTC_TRY(metrics.writeEvent("not_finite", {{"step", std::to_string(position.step + 1)}}));
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
  Metadata metadata = formatPosition(position);
  follower.describe(metadata);
  return metadata;
}

/// A file has weights to go on from: those that are not finite do not take the place of others.
Status Trainer::saveFile(const std::string &path) {
  std::optional<BadTensor> bad;
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
  return options.keep ? keepCheckpoint(options.save, savedStep, options.keep, options.load) : Status();
}

Status Trainer::save() {
  ORTC_TRY(saveCheckpoint());
  return metrics.writeEvent(
      "save", {{"step", std::to_string(position.step)}, {"file", formatJsonString(options.save)}});
}

/// The machine is measured now, when the step's caches and threads are no longer needed.
Status Trainer::reportProfile() {
  KernelTable table = artifact.readKernels();
  const ortc_program_info &info = artifact.getInfo();
  int lanes = countLanes(info.architecture, info.features), threads = int(session.getThreads());
  Machine single = measureMachine(lanes, 1), all = threads > 1 ? measureMachine(lanes, threads) : single;
  Profile profile = makeProfile(profiler.getTimes(), table, single, all);
  reporter.result("\n" + formatProfile(profile, info.target_name ? info.target_name : "?"));
  return metrics.writeEvent("profile", describeProfile(profile));
}

Status train(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted) {
  Trainer trainer(options, interrupted);
  return trainer.run();
}

} // namespace ortc::engine
