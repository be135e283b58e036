// The training loop of `ortc run`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/train_loop.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <unistd.h>

#include "host/averages.h"
#include "host/buckets.h"
#include "host/data/convert.h"
#include "host/data/output_paths.h"
#include "host/evaluate.h"
#include "host/feeder.h"
#include "host/index_place.h"
#include "host/kept_checkpoints.h"
#include "host/position.h"
#include "host/profile.h"
#include "host/report.h"
#include "host/spec.h"
#include "host/text.h"

namespace ortc::host {
namespace {

using Clock = std::chrono::steady_clock;

// State of artifacts with --loss-scale.
constexpr const char *kLossScale = "loss_scale", *kSkipped = "loss_scale.skipped";

/// One run from opening the artifact to the last line. Methods are called in the order they stand.
class Trainer {
public:
  Trainer(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted)
      : options(options), interrupted(interrupted), reporter(options.quiet) {}

  Status run();

private:
  /// Where the data of the next step are that is read, which comes before the next step that is done.
  struct Reading {
    int64_t epoch, slice;
    int64_t orderedEpoch = -1;
    std::optional<Order> order = std::nullopt;
  };

  Status open();
  Status resume();
  Status planRates();
  Status loop();
  Status read(Reading &reading, Feed &feed) const;
  const Entry *findBeside(uint32_t role, const Entry &beside) const;
  Status trainStep();
  Status describeStep(const Entry &taken, MetricsFile::Fields &fields);
  bool isEvaluationDue() const;
  Status resumeFollower(const Metadata &metadata);
  Status evaluateNow(bool isDue);
  Status follow(const Evaluation &result);
  Status save();
  Status reportProfile();
  Status explain(const Status &status, ortc_status told, const Entry &taken);
  Status warnOfLoss(const Entry &taken);
  void endEpoch();
  Status keep(const Status &failure);
  Metadata describePosition() const;
  Status saveCheckpoint();

  const TrainOptions &options;
  const volatile std::sig_atomic_t &interrupted;
  Reporter reporter;
  MetricsFile metrics;
  Device device;
  Artifact artifact;
  Profiler profiler; // outlives the session, whose kernels it is told of
  Session session;
  const Entry *entry = nullptr, *evalEntry = nullptr;
  const Entry *accumulateEntry = nullptr; // of steps that end without an update; null: every step has one
  int64_t accumulate = 1;                 // gradient steps before an update
  std::optional<Buckets> buckets; // choose the entry of every step; the two above are of the largest binding
  Batches data, evalData;
  MetricSet evalMetrics;
  Watch watch;
  int64_t watchEvery = kWatchEvery;
  Position position;
  Follower follower;
  Schedule schedule;                      // the position's, with its end
  int64_t stepsDone = 0, stepsWanted = 0; // of this run
  double setRate = 0, lastLoss = 0;
  int64_t savedStep = -1, evaluatedStep = -1;
  int64_t finiteStep = -1; ///< the last one of this run with a loss that is finite
  double finiteLoss = 0;
  bool hasFailedLoss = false; ///< one was not finite, and that was said
  bool isLossFailure = false; ///< the run has ended for it
  std::string updateCounter;  ///< the state that counts updates
  bool hasLossScale = false;  ///< the artifact has; steps with infinite gradients are skipped
  double skippedBefore = 0;   ///< of other runs
  WeightedSum epochLoss;      ///< of the epoch's steps in this run
  int64_t epochSteps = 0;
  std::string evaluation; ///< what was found since the last line of an epoch
  Clock::time_point started, epochStarted;
  Feeder feeder; // ends before what it reads
};

} // namespace

Status Trainer::run() {
  if (Status opened = open(); !opened.isOk()) {
    if (!interrupted)
      return opened;
    reporter.line("interrupted before the first step: " + opened.getMessage());
    return Status();
  }
  ORTC_TRY(resume());
  ORTC_TRY(planRates());
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

/// Of an output, before the work.
static Status checkFolder(const std::string &file) {
  std::string place; // links are followed
  ORTC_TRY(resolveOutput(file, place));
  std::filesystem::path folder = std::filesystem::path(place).parent_path();
  std::string where = folder.empty() ? "." : folder.string();
  return access(where.c_str(), W_OK) == 0
             ? Status()
             : Status::failure(file + ": the folder " + where + " is not there or cannot be written");
}

/// Refuses what can be refused without a session: files, data, the folder of --save.
Status Trainer::open() {
  for (const std::string &file : {options.save, options.saveBest})
    if (!file.empty())
      ORTC_TRY(checkFolder(file));
  ORTC_TRY(Device::open(options.device, device));
  ORTC_TRY(Artifact::open(options.artifact, artifact, device));
  if (options.buckets.empty()) {
    ORTC_TRY(artifact.findEntry(ORTC_ENTRY_TRAIN, options.binding, entry));
  } else {
    ORTC_TRY(Buckets::create(artifact, buckets.emplace()));
    entry = &buckets->getLargest();
  }
  std::vector<std::string> notes;
  std::unique_ptr<DataSource> source;
  ORTC_TRY(openData(options.data, source, &interrupted));
  std::vector<NamedFile> inputs = listArtifactFiles(options.artifact);
  for (const std::string &file : source->getFiles())
    inputs.push_back({"--data", file});
  ORTC_TRY(Batches::create(*source, entry->inputs, Remainder::Drop, data, notes, options.buckets));
  ORTC_TRY(data.setShare(options.rank, options.world));
  if (buckets)
    ORTC_TRY(buckets->readLengths(*source, options.buckets, data));
  accumulateEntry = findBeside(ORTC_ENTRY_ACCUMULATE, *entry);
  if (!options.evalData.empty()) {
    ORTC_TRY(checkAverages(artifact, "--eval-weights", options.evalWeights));
    ORTC_TRY(artifact.findEntry(ORTC_ENTRY_EVAL, buckets ? entry->bindingName : options.binding, evalEntry));
    for (const std::string &metric : options.evalMetrics)
      ORTC_TRY(evalMetrics.add(metric));
    ORTC_TRY(openData(options.evalData, source, &interrupted));
    for (const std::string &file : source->getFiles())
      inputs.push_back({"--eval-data", file});
    ORTC_TRY(
        Batches::create(*source, evalEntry->inputs, Remainder::Repeat, evalData, notes, options.buckets));
  }
  for (NamedFile &file : listLoadedFiles(options.load))
    if (file.path != options.load) // a folder; --save may be a checkpoint of --load
      inputs.push_back(std::move(file));
  ORTC_TRY(checkOutputs(
      inputs, {{"--save", options.save}, {"--save-best", options.saveBest}, {"--metrics", options.metrics}}));
  ORTC_TRY(checkOutputs({{"--load", options.load}}, {{"--metrics", options.metrics}}));
  if (options.keep) {
    inputs.push_back({"--save-best", options.saveBest});
    inputs.push_back({"--metrics", options.metrics});
    for (const NamedFile &file : inputs)
      if (isKeptName(options.save, file.path))
        return Status::refusal(file.flag + " " + file.path +
                               ": --keep gives such names to checkpoints, and removes them; " +
                               "rename the file, or give --save another name");
  }
  SessionOptions settings{options.threads, options.stopOnNan};
  if (options.profile) {
    settings.trace = Profiler::trace;
    settings.traceContext = &profiler;
  }
  watch = options.watch;
  if (options.watchEvery)
    watchEvery = options.watchEvery;
  if (!watch.isEmpty())
    ORTC_TRY(watch.open(artifact.getProgram()));
  ORTC_TRY(Session::create(artifact, settings, session));
  for (const std::string &note : notes)
    reporter.note(note);
  if (data.getDropped())
    reporter.note(data.describeDropped("an epoch"));
  return Status();
}

const Entry *Trainer::findBeside(uint32_t role, const Entry &beside) const {
  for (const Entry &candidate : artifact.getEntries())
    if (candidate.role == role && candidate.binding == beside.binding)
      return &candidate;
  return nullptr;
}

Status Trainer::resume() {
  position.items = data.getItems();
  position.world = options.world;
  position.shuffle = options.shuffle;
  position.seed = options.seed.value_or(0);
  ORTC_TRY(session.getScalar("lr", position.lr));
  FollowOptions following = options.follow;
  following.savesBest = !options.saveBest.empty();
  follower.begin(following);
  Metadata metadata; // where it says where the training stood
  if (options.load.empty())
    ORTC_TRY(artifact.checkWeights());
  if (!options.load.empty()) {
    LoadResult loaded;
    ORTC_TRY(session.load(options.load, loaded));
    if (!loaded.unused.empty())
      reporter.note(loaded.unused);
    for (const std::string &note : loaded.notes)
      reporter.note(note);
    std::optional<Position> stored;
    if (loaded.freshState)
      reporter.note(options.load + ": has weights alone; optimizer state and step counter start anew");
    else
      ORTC_TRY(parsePosition(loaded.metadata, options.load, stored));
    ORTC_TRY(session.getScalar("lr", position.lr));
    if (stored) {
      metadata = loaded.metadata;
      Position wanted = position;
      position = *stored;
      if (options.seed && *options.seed != stored->seed)
        reporter.note("--seed " + std::to_string(*options.seed) + " replaces the checkpoint's seed " +
                      std::to_string(stored->seed));
      position.seed = options.seed.value_or(stored->seed);
      position.shuffle = options.shuffle && stored->shuffle;
      position.world = wanted.world;
      if (stored->items != wanted.items || stored->world != wanted.world ||
          stored->slice > data.getSlices()) {
        std::string items = formatCount(wanted.items, data.isBatch() ? "sample" : "slice");
        reporter.note(stored->world != wanted.world
                          ? "the data are shared by " + std::to_string(wanted.world) +
                                " processes but the checkpoint was made by " + std::to_string(stored->world) +
                                ": the next epoch begins"
                      : stored->items != wanted.items
                          ? "the data has " + items + " but the checkpoint was made with " +
                                std::to_string(stored->items) + ": the next epoch begins"
                          : "an epoch has " + formatCount(data.getSlices(), "step") +
                                " but the checkpoint was made after " + std::to_string(stored->slice) +
                                " of one: the next epoch begins");
        position.items = wanted.items;
        position.epoch += stored->slice > 0;
        position.slice = 0;
      }
      int64_t epoch = position.epoch + (position.slice == data.getSlices());
      reporter.line("resumed at step " + std::to_string(position.step) + ", epoch " + std::to_string(epoch));
    }
  }
  ORTC_TRY(resumeFollower(metadata));
  if (accumulateEntry) {
    double value = 0;
    ORTC_TRY(session.getScalar("accumulate", value));
    if (!(value >= 1 && value <= 1e9) || std::trunc(value) != value)
      return Status::failure(options.load + ": 'accumulate' is " + formatNumber(value) +
                             ", but it must be a whole number from 1 to 1000000000");
    accumulate = int64_t(value);
  }
  ortc_tensor_info counter{};
  counter.size = sizeof(counter);
  bool isRenamed = ortc_tensor_find(artifact.getProgram(), "optimizer.step", &counter) == ORTC_OK;
  updateCounter = isRenamed ? "optimizer.step" : "step"; // where the model has a tensor of that name
  hasLossScale = ortc_tensor_find(artifact.getProgram(), kSkipped, &counter) == ORTC_OK &&
                 counter.role == ORTC_ROLE_STATE && !(counter.flags & ORTC_TENSOR_IN_MODEL);
  if (hasLossScale)
    ORTC_TRY(session.getScalar(kSkipped, skippedBefore));
  int64_t slices = data.getSlices();
  if (options.steps)
    stepsWanted = *options.steps;
  else if (__builtin_mul_overflow(options.epochs.value_or(1), slices, &stepsWanted))
    stepsWanted = INT64_MAX;
  if (stepsWanted > kMostSteps)
    return Status::refusal((options.steps ? "--steps " + std::to_string(*options.steps)
                                          : "--epochs " + std::to_string(options.epochs.value_or(1)) +
                                                " of " + formatCount(slices, "step")) +
                           " are too many; there are at most " + std::to_string(kMostSteps));
  return Status();
}

/// --lr and --lr-schedule replace what the checkpoint has. A schedule without a total ends where this run does; that
/// end is no part of the checkpoint, so the next run gets an end of its own.
Status Trainer::planRates() {
  if (artifact.getSchedule()) {
    if (options.schedule)
      return Status::refusal(
          "--lr-schedule: " + options.artifact +
          " computes its rate by itself, by --schedule lr=" + artifact.getSchedule()->format() +
          "; leave the flag out, or compile the artifact without a schedule");
    if (!position.schedule.isPlain())
      reporter.note(options.load + ": its learning-rate schedule, " + position.schedule.format() +
                    ", gives way to that of the artifact, " + artifact.getSchedule()->format());
    position.schedule = Schedule();
    ORTC_TRY(artifact.getSchedule()->checkRate(options.lr.value_or(position.lr)));
  }
  if (options.lr) {
    position.lr = *options.lr;
    if (!options.schedule)
      position.schedule = Schedule();
  }
  if (follower.hasPlateau()) // which lowers the rate itself
    position.schedule = Schedule();
  if (options.schedule) {
    ORTC_TRY(options.schedule->checkRate(position.lr));
    position.schedule = *options.schedule;
  }
  schedule = position.schedule;
  int64_t end = position.step + stepsWanted;
  if (schedule.total == 0) {
    schedule.total = end;
  } else if (schedule.isFalling() && end > schedule.total) {
    std::string what =
        "the learning-rate schedule " + schedule.format() + " ends at step " + std::to_string(schedule.total);
    std::string source = options.schedule ? "" : options.load + ": ";
    // Nothing but the smallest rate is left. That is fine where somebody asks for one that is not zero.
    if (stepsWanted > 0 && position.step >= schedule.total &&
        (!options.schedule || schedule.getRate(position.lr, schedule.total) == 0))
      return Status::refusal(
          source + what + ", and this run begins at step " + std::to_string(position.step) +
          "; give --lr-schedule with total=" + std::to_string(end) + " or more, or --lr for a constant rate");
    reporter.note(source + what + "; the steps after it train at " +
                  formatShort(schedule.getRate(position.lr, schedule.total)));
  }
  ORTC_TRY(session.getScalar("lr", setRate));
  return Status();
}

Status Trainer::loop() {
  if (options.profile)
    profiler.start(stepsWanted, artifact.readKernels().kernels.size());
  started = epochStarted = Clock::now();
  // A run that was interrupted in an evaluation has left it to this one.
  if (follower.isActive() && position.step > 0 && stepsWanted > 0 && isEvaluationDue() &&
      follower.getEvaluatedStep() != position.step)
    ORTC_TRY(evaluateNow(/*isDue=*/true));
  // Bytes and steps that are read ahead, where these are several: a thread may wait a while for a processor.
  constexpr size_t kAhead = 4 << 20, kMostAhead = 64;
  size_t bytes = 1;
  for (size_t i = 0; i < entry->inputs.size(); ++i)
    bytes += data.getInputBytes(i);
  feeder.start(std::min(kAhead / bytes, kMostAhead), stepsWanted,
               [this, reading = std::make_shared<Reading>(Reading{position.epoch, position.slice})](
                   Feed &feed) { return read(*reading, feed); });
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
  TensorView labels =
      session.view(taken, "loss.count"); // of --accumulate by=tokens, where a step may have none
  epochLoss.add(lastLoss, labels.type == DataType::None ? 1 : loadAsDouble(labels.type, labels.data));
  MetricsFile::Fields fields;
  ORTC_TRY(describeStep(taken, fields));
  ORTC_TRY(metrics.writeStep(position.step, epoch, lastLoss, rate, milliseconds, fields));
  if (isWatched) {
    MetricsFile::Fields seen = {{"step", std::to_string(position.step)}};
    ORTC_TRY(watch.describe(session, seen));
    ORTC_TRY(metrics.writeEvent("watch", seen));
  }
  if (std::isfinite(lastLoss)) {
    finiteStep = position.step;
    finiteLoss = lastLoss;
  } else if (!hasFailedLoss) {
    ORTC_TRY(warnOfLoss(chosen));
  }
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
  hasFailedLoss = true;
  const Order *order = nullptr;
  std::optional<Order> made;
  if (position.shuffle)
    order = &made.emplace(data.makeOrder(position.seed, position.epoch));
  std::string labels =
      describeLongLabels({session, taken, artifact.getLosses(), data, position.slice - 1, order});
  reporter.warn("the loss is " + formatShort(lastLoss) + " in step " + std::to_string(position.step) +
                " (epoch " + std::to_string(position.epoch) + "); " +
                (finiteStep < 0 ? "no step of this run had a finite one"
                                : "the last finite one was " + formatShort(finiteLoss, 5) + " in step " +
                                      std::to_string(finiteStep)) +
                (labels.empty() ? "; try a smaller --lr, or --stop-on-nan with --save-every" : labels));
  return metrics.writeEvent("not_finite", {{"step", std::to_string(position.step)}});
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
  if (options.save.empty() || stepsDone == 0 || savedStep == position.step || isLossFailure)
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
  isLossFailure = told == ORTC_E_NOT_FINITE;
  if (!isLossFailure)
    return Status::failure(status.getMessage() + where);
  ORTC_TRY(metrics.writeEvent("not_finite", {{"step", std::to_string(position.step + 1)}}));
  return Status::failure("the loss is not finite" + where + describeLongLabels(step) +
                         "; no parameter was changed by this step" +
                         (savedStep >= 0
                              ? ", and " + options.save + " holds step " + std::to_string(savedStep)
                              : ", nothing was saved; try a smaller --lr or --save-every"));
}

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
    if (measure.hasAccuracy)
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

/// The goal of the checkpoint may be one that no flag has named.
Status Trainer::resumeFollower(const Metadata &metadata) {
  std::vector<std::string> notes;
  ORTC_TRY(follower.resume(metadata, options.load, notes));
  for (const std::string &note : notes)
    reporter.note(note);
  if (follower.hasPlateau() && !options.follow.plateau && (options.lr || options.schedule))
    follower.dropPlateau();
  if (!evalEntry)
    return follower.hasPlateau()
               ? Status::refusal(options.load +
                                 ": its learning rate follows evaluations, and there are none; give "
                                 "--eval-data, or --lr for a constant rate")
               : Status();
  if (follower.isExhausted())
    reporter.note(options.load +
                  ": the training has ended early there; a larger --patience, or none, goes on");
  const std::string &goal = follower.getGoal().metric;
  const std::vector<std::string> figures = listFigures(artifact);
  bool isFigure = std::find(figures.begin(), figures.end(), goal) != figures.end();
  if (follower.isActive() && !isFigure && Goal::isOfLoss(goal))
    return Status::refusal("--best " + follower.getGoal().format() + ": there is no " + goal + " in " +
                           artifact.getPath() + "; " + describeNames(goal, figures) + ", and any --metric");
  if (follower.isActive() && !isFigure)
    ORTC_TRY(evalMetrics.add(goal));
  return checkMetrics(artifact, *evalEntry, evalMetrics);
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
      ORTC_TRY(session.save(options.saveBest, describePosition()));
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

Metadata Trainer::describePosition() const {
  Metadata metadata = formatPosition(position);
  follower.describe(metadata);
  return metadata;
}

Status Trainer::saveCheckpoint() {
  ORTC_TRY(session.save(options.save, describePosition()));
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

} // namespace ortc::host
