// What `ortc run` does before the first step: files, checkpoint, rates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unistd.h>

#include "engine/checkpoints/kept_checkpoints.h"
#include "engine/session/averages.h"
#include "support/OutputPaths.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc::engine {

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
                           artifact.getPath() + "; any --metric goes, too; " + describeNames(goal, figures));
  if (follower.isActive() && !isFigure)
    ORTC_TRY(evalMetrics.add(goal));
  return checkMetrics(artifact, *evalEntry, evalMetrics);
}

/// --lr and --lr-schedule replace what the checkpoint has. A schedule without a total ends where this run does; that
/// end is no part of the checkpoint, so the next run gets an end of its own.
Status Trainer::planRates() {
  if (artifact.getSchedule()) {
    if (options.schedule || options.follow.plateau)
      return Status::refusal(
          "--lr-schedule: " + options.artifact +
          " computes its rate by itself, by --schedule lr=" + artifact.getSchedule()->format() +
          "; leave the flag out, or compile the artifact without a schedule");
    if (follower.hasPlateau())
      reporter.note(options.load + ": its plateau gives way to the schedule of the artifact, " +
                    artifact.getSchedule()->format());
    follower.dropPlateau();
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

} // namespace ortc::engine
