// What a training does before its first step: the checkpoint, rates, how many steps there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include <algorithm>
#include <cmath>

#include "engine/session/tensor_roles.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc::engine {

Trainer::Trainer(const TrainOptions &options, const TrainingParts &parts, Observer &observer,
                 const volatile std::sig_atomic_t &interrupted)
    : options(options), parts(parts), observer(observer), interrupted(interrupted), artifact(parts.artifact),
      session(parts.session) {
  accumulateEntry = artifact.findEntry(ORTC_ENTRY_ACCUMULATE, parts.entry->binding);
}

Status Trainer::resume(const std::string &path, LoadResult &loaded) {
  const Position stood = position;
  const Follower followed = follower;
  const std::string from = loadedFrom;
  const int64_t saved = savedStep, evaluated = evaluatedStep;
  const bool ended = hasEndedEpoch;
  const std::optional<double> taken = takenRate;
  Status begun = begin(path, loaded);
  if (!begun.isOk()) {
    position = stood, follower = followed, loadedFrom = from;
    savedStep = saved, evaluatedStep = evaluated, hasEndedEpoch = ended, takenRate = taken;
  }
  return begun;
}

/// Before the session has anything of a checkpoint with the state of a training.
Status Trainer::checkMetadata(const Metadata &metadata, const std::string &path) const {
  std::optional<Position> stored;
  std::vector<std::string> notes;
  const bool hasState = std::any_of(metadata.begin(), metadata.end(), [](const auto &entry) {
    return entry.first.starts_with(kRoleKey) && entry.second == getRoleName(TensorRole::State);
  });
  if (!hasState)
    return Status();
  ORTC_TRY(parsePosition(metadata, path, stored));
  Follower read = follower;
  return stored ? readFollower(metadata, path, read, notes) : Status();
}

Status Trainer::begin(const std::string &path, LoadResult &loaded) {
  loadedFrom = path;
  position = Position();
  position.items = parts.data ? parts.data->getItems() : 0;
  position.world = options.world;
  position.shuffle = options.shuffle;
  position.seed = options.seed.value_or(0);
  savedStep = evaluatedStep = -1;
  takenRate.reset();
  hasEndedEpoch = isFinitenessKnown = isNotFinite = false;
  ORTC_TRY(session.getScalar("lr", position.lr));
  FollowOptions following = options.follow;
  following.savesBest = !options.saveBest.empty();
  follower.begin(following);
  Metadata metadata; // where it says where the training stood
  if (!path.empty()) {
    ORTC_TRY(session.load(path, loaded, [&](const Metadata &stored) { return checkMetadata(stored, path); }));
    if (!loaded.unused.empty())
      observer.note(loaded.unused);
    for (const std::string &note : loaded.notes)
      observer.note(note);
    ORTC_TRY(takePosition(loaded, path, metadata));
  }
  ORTC_TRY(session.getScalar("lr", knownRate));
  ORTC_TRY(resumeFollower(metadata, path));
  return readCounters(path);
}

/// Goes on where the checkpoint stood; another order of the data begins with the next epoch.
Status Trainer::takePosition(const LoadResult &loaded, const std::string &path, Metadata &metadata) {
  std::optional<Position> stored;
  if (loaded.freshState)
    observer.note(path + ": has weights alone; optimizer state and step counter start anew");
  else
    ORTC_TRY(parsePosition(loaded.metadata, path, stored));
  ORTC_TRY(session.getScalar("lr", position.lr));
  if (!stored)
    return Status();
  metadata = loaded.metadata;
  Position wanted = position;
  position = *stored;
  if (options.seed && *options.seed != stored->seed)
    observer.note("--seed " + std::to_string(*options.seed) + " replaces the checkpoint's seed " +
                  std::to_string(stored->seed));
  position.seed = options.seed.value_or(stored->seed);
  position.shuffle = options.shuffle && stored->shuffle;
  position.world = wanted.world;
  const bool isLonger = parts.data && stored->slice > getSlices();
  if (stored->items != wanted.items || stored->world != wanted.world || isLonger) {
    std::string items = formatCount(wanted.items, parts.data && parts.data->isBatch() ? "sample" : "slice");
    observer.note(
        stored->world != wanted.world ? "the data are shared by " + std::to_string(wanted.world) +
                                            " processes but the checkpoint was made by " +
                                            std::to_string(stored->world) + ": the next epoch begins"
        : stored->items != wanted.items
            ? "the data has " + items + " but the checkpoint was made with " + std::to_string(stored->items) +
                  ": the next epoch begins"
            : "an epoch has " + formatCount(getSlices(), "step") + " but the checkpoint was made after " +
                  std::to_string(stored->slice) + " of one: the next epoch begins");
    position.items = wanted.items;
    position.epoch += stored->slice > 0;
    position.slice = 0;
  }
  hasEndedEpoch = position.slice == getSlices();
  int64_t epoch = position.epoch + (position.slice == getSlices());
  observer.line("resumed at step " + std::to_string(position.step) + ", epoch " + std::to_string(epoch));
  return Status();
}

/// Whether the goal is a figure that only a further metric gives.
bool Trainer::lacksGoal(const Follower &of) const {
  const std::vector<std::string> figures = listFigures(artifact);
  return of.isActive() && std::find(figures.begin(), figures.end(), of.getGoal().metric) == figures.end();
}

/// Goes on with `read`, which has begun.
Status Trainer::readFollower(const Metadata &metadata, const std::string &path, Follower &read,
                             std::vector<std::string> &notes) const {
  ORTC_TRY(read.resume(metadata, path, notes));
  if (read.hasPlateau() && !options.follow.plateau && (options.lr || options.schedule || options.rate))
    read.dropPlateau();
  if (!parts.evalEntry)
    return read.hasPlateau()
               ? Status::refusal(path + ": its learning rate follows evaluations, and there are none; give "
                                        "--eval-data, or --lr for a constant rate")
               : Status();
  const std::string goal = read.getGoal().metric;
  if (lacksGoal(read) && Goal::isOfLoss(goal))
    return Status::refusal("--best " + read.getGoal().format() + ": there is no " + goal + " in " +
                           artifact.getPath() + "; any --metric goes, too; " +
                           describeNames(goal, listFigures(artifact)));
  return Status();
}

/// The goal of the checkpoint may be one that no flag has named.
Status Trainer::resumeFollower(const Metadata &metadata, const std::string &path) {
  std::vector<std::string> notes;
  ORTC_TRY(readFollower(metadata, path, follower, notes));
  for (const std::string &note : notes)
    observer.noteFollowing(note);
  if (!parts.evalEntry)
    return Status();
  if (follower.isExhausted())
    observer.note(path + ": the training has ended early there; a larger --patience, or none, goes on");
  if (lacksGoal(follower))
    ORTC_TRY(parts.evalMetrics.add(follower.getGoal().metric));
  return checkMetrics(artifact, *parts.evalEntry, parts.evalMetrics);
}

/// States of the optimizer that the loop goes by.
Status Trainer::readCounters(const std::string &path) {
  if (accumulateEntry) {
    double value = 0;
    ORTC_TRY(session.getScalar("accumulate", value));
    if (!(value >= 1 && value <= 1e9) || std::trunc(value) != value)
      return Status::failure(path + ": 'accumulate' is " + formatNumber(value) +
                             ", but it must be a whole number from 1 to 1000000000");
    accumulate = int64_t(value);
  }
  ortc_tensor_info counter = ORTC_INIT(ortc_tensor_info);
  bool isRenamed = ortc_tensor_find(artifact.getProgram(), "optimizer.step", &counter) == ORTC_OK;
  updateCounter = isRenamed ? "optimizer.step" : "step"; // where the model has a tensor of that name
  hasLossScale = ortc_tensor_find(artifact.getProgram(), kSkipped, &counter) == ORTC_OK &&
                 counter.role == ORTC_ROLE_STATE && !(counter.flags & ORTC_TENSOR_IN_MODEL);
  return Status();
}

Status Trainer::countSteps() {
  stepsDone = 0;
  lastEpoch = -1;
  if (options.steps) {
    stepsWanted = *options.steps;
  } else if (parts.stream) {
    stepsWanted = kMostSteps;
    lastEpoch = position.epoch + options.epochs.value_or(1);
  } else if (__builtin_mul_overflow(options.epochs.value_or(1), getSlices(), &stepsWanted)) {
    stepsWanted = INT64_MAX;
  }
  if (stepsWanted > kMostSteps)
    return Status::refusal((options.steps ? "--steps " + std::to_string(*options.steps)
                                          : "--epochs " + std::to_string(options.epochs.value_or(1)) +
                                                " of " + formatCount(getSlices(), "step")) +
                           " are too many; there are at most " + std::to_string(kMostSteps));
  return Status();
}

Status Trainer::plan() {
  isStopped = isAbandoned = isNotFinite = false;
  failedStep = -1;
  losses = LossTrend();
  epochLoss = WeightedSum();
  epochSteps = 0;
  evaluation.clear();
  if (hasLossScale)
    ORTC_TRY(session.getScalar(kSkipped, skippedBefore));
  ORTC_TRY(countSteps());
  ORTC_TRY(planRates());
  if (isFinitenessKnown)
    return Status();
  ORTC_TRY(finite.begin(artifact, session));
  isFinitenessKnown = true;
  if (const std::optional<BadTensor> &bad = finite.getBadAtFirst())
    observer.warn((loadedFrom.empty() ? artifact.getPath() : loadedFrom) + ": " + bad->describe());
  if (std::string shuffling = parts.data ? parts.data->describeShuffling() : "";
      position.shuffle && stepsWanted > 0 && !shuffling.empty())
    observer.note(shuffling);
  return Status();
}

/// Whoever shares the session may have set the rate since: with nothing that chooses rates, it is that from there on.
Status Trainer::followRate() {
  double now = 0;
  ORTC_TRY(session.getScalar("lr", now));
  if (now == knownRate)
    return Status();
  knownRate = now;
  if (!options.rate && !follower.hasPlateau() && position.schedule.isPlain())
    position.lr = setRate = now;
  return Status();
}

/// --lr and --lr-schedule replace what the checkpoint has. A schedule without a total ends where this run does; that
/// end is no part of the checkpoint, so the next run gets an end of its own.
Status Trainer::planRates() {
  ORTC_TRY(followRate());
  if (const std::optional<Schedule> &own = artifact.getSchedule()) {
    if (options.schedule || options.follow.plateau)
      return Status::refusal("--lr-schedule: " + options.artifact +
                             " computes its rate by itself, by --schedule lr=" + own->format() +
                             "; leave the flag out, or compile the artifact without a schedule");
    if (follower.hasPlateau())
      observer.note(loadedFrom + ": its plateau gives way to the schedule of the artifact, " + own->format());
    follower.dropPlateau();
    if (!position.schedule.isPlain())
      observer.note(loadedFrom + ": its learning-rate schedule, " + position.schedule.format() +
                    ", gives way to that of the artifact, " + own->format());
    position.schedule = Schedule();
    ORTC_TRY(own->checkRate(options.lr.value_or(position.lr)));
  }
  if (options.lr && !(follower.hasPlateau() && options.lr == takenRate)) {
    position.lr = *options.lr;
    takenRate = options.lr;
  }
  // A plateau lowers the rate itself.
  if ((options.lr && !options.schedule) || options.rate || follower.hasPlateau())
    position.schedule = Schedule();
  if (options.schedule) {
    ORTC_TRY(options.schedule->checkRate(position.lr));
    position.schedule = *options.schedule;
  }
  schedule = position.schedule;
  const bool isEndless = lastEpoch >= 0;
  if (isEndless && schedule.isFalling() && schedule.total == 0)
    return Status::refusal("learning-rate schedule '" + schedule.format() +
                           "': it needs a total: how many batches there will be is not known");
  int64_t end = position.step + (isEndless ? 1 : stepsWanted);
  if (schedule.total == 0) {
    schedule.total = end;
  } else if (schedule.isFalling() && end > schedule.total) {
    std::string what =
        "the learning-rate schedule " + schedule.format() + " ends at step " + std::to_string(schedule.total);
    std::string source = options.schedule ? "" : loadedFrom + ": ";
    // Nothing but the smallest rate is left. That is fine where somebody asks for one that is not zero.
    if (stepsWanted > 0 && position.step >= schedule.total &&
        (!options.schedule || schedule.getRate(position.lr, schedule.total) == 0))
      return Status::refusal(
          source + what + ", and this run begins at step " + std::to_string(position.step) +
          "; give --lr-schedule with total=" + std::to_string(end) + " or more, or --lr for a constant rate");
    observer.note(source + what + "; the steps after it train at " +
                  formatShort(schedule.getRate(position.lr, schedule.total)));
  }
  return session.getScalar("lr", setRate);
}

} // namespace ortc::engine
