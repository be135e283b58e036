// One training: steps, evaluations and what follows from them, checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/data/feeder.h"
#include "engine/session/not_finite.h"
#include "engine/session/position.h"
#include "engine/training/batch_stream.h"
#include "engine/training/buckets.h"
#include "engine/training/evaluate.h"
#include "engine/training/observer.h"
#include "engine/training/profile.h"
#include "engine/training/train_options.h"

namespace ortc::engine {

// State of artifacts with --loss-scale.
inline constexpr const char *kLossScale = "loss_scale", *kSkipped = "loss_scale.skipped";

/// Begins the slices of an evaluation in an epoch.
using MakeSlices = std::function<std::unique_ptr<SliceSource>(int64_t epoch)>;

/// The things that a training works with. They outlive it.
struct TrainingParts {
  const Artifact &artifact;
  Session &session;
  const Entry *entry = nullptr;  ///< of steps; with buckets that of the largest binding
  const Batches *data = nullptr; ///< what steps read; null: they read `stream`
  BatchStream *stream = nullptr;
  const Buckets *buckets = nullptr; ///< choose the entry of every step; null: there is one
  const Entry *evalEntry = nullptr; ///< null: nothing is evaluated
  MakeSlices evalSlices = nullptr;
  MetricSet &evalMetrics;
  Watch *watch = nullptr;       ///< null: nothing is watched
  Profiler *profiler = nullptr; ///< null: nothing is profiled
  bool hasMetrics = true;       ///< the observer wants the numbers of steps beside the loss
};

/// Makes a flag true for as long as it is there.
class Raised {
public:
  explicit Raised(bool &flag) : flag(flag) { flag = true; }
  ~Raised() { flag = false; }
  Raised(const Raised &) = delete;
  Raised &operator=(const Raised &) = delete;

private:
  bool &flag;
};

/// resume() comes first; then plan() and train(), any number of times: each pair is a run. Options are read anew by
/// each of them. Ctrl-C, which makes `interrupted` nonzero, ends train() after the step in progress.
class Trainer {
public:
  Trainer(const TrainOptions &options, const TrainingParts &parts, Observer &observer,
          const volatile std::sig_atomic_t &interrupted);

  /// Begins from a checkpoint, or with "" from what the session has. A file that it refuses leaves it where it was.
  Status resume(const std::string &path, LoadResult &loaded);
  /// Refuses what can be refused before the first step: `options` say how many steps there are.
  Status plan();
  /// Trains. A failure that is not the loss's saves what was trained before it, too.
  Status train();
  /// The last lines of a run.
  Status report();

  /// Ends train() after the step in progress, as if there were no more to do.
  void stop() { isStopped = true; }
  /// A failure that saves nothing: somebody wants an end at once.
  void abandon() { isAbandoned = true; }
  /// A checkpoint to go on from. Refuses numbers that are not finite.
  Status saveFile(const std::string &path);
  /// An evaluation by an entry that counts for nothing, with averages of a kind in place of the parameters ("", or
  /// where nothing was averaged yet: none).
  Status evaluateWith(const Entry &entry, SliceSource &source, const std::string &weights, Evaluation &result,
                      bool &isAveraged);

  int64_t getStep() const { return position.step; }
  /// Of the next step.
  int64_t getEpoch() const { return position.epoch + (hasEndedEpoch && !parts.stream); }
  int64_t getSlice() const { return hasEndedEpoch ? 0 : position.slice; }
  int64_t getStepsDone() const { return stepsDone; }
  bool isDiverged() const { return isNotFinite; }  ///< the last failure is one of numbers that are not finite
  bool isTraining() const { return training; }     ///< train() goes on
  bool isEvaluating() const { return evaluating; } ///< evaluateWith() does; parameters may be averages
  bool isShuffled() const { return position.shuffle; }
  uint64_t getSeed() const { return position.seed; }
  const Follower &getFollower() const { return follower; }

private:
  using Clock = std::chrono::steady_clock;
  /// Where the data of the next step are that is read, which comes before the next step that is done.
  struct Reading {
    int64_t epoch, slice;
    int64_t orderedEpoch = -1;
    std::optional<Order> order = std::nullopt;
  };
  /// A step that has failed, with the order of its data.
  struct Failed {
    std::optional<Order> order;
    std::optional<FailedStep> step;
  };

  // train_setup.cpp
  Status begin(const std::string &path, LoadResult &loaded);
  Status checkMetadata(const Metadata &metadata, const std::string &path) const;
  Status takePosition(const LoadResult &loaded, const std::string &path, Metadata &metadata);
  Status resumeFollower(const Metadata &metadata, const std::string &path);
  bool lacksGoal(const Follower &of) const;
  Status readFollower(const Metadata &metadata, const std::string &path, Follower &read,
                      std::vector<std::string> &notes) const;
  Status readCounters(const std::string &path);
  Status countSteps();
  Status planRates();
  Status followRate();

  // train_loop.cpp
  Status loop();
  Status trainData();
  Status trainStream();
  Status followStep();
  void startFeeding();
  Status read(Reading &reading, Feed &feed) const;
  Status trainStep();
  Status chooseRate(double &rate);
  Status performStep(const Entry &chosen, double rate, Clock::time_point begin);
  Status describeStep(const Entry &taken, EventFields &fields);
  bool hasEnded() const { return interrupted || isStopped || follower.isExhausted(); }
  bool updatesNext() const { return !accumulateEntry || (position.step + 1) % accumulate == 0; }
  int64_t getSlices() const { return parts.data ? parts.data->getSlices() : -1; }
  /// The epoch of the step before the next one, if there is one.
  int64_t getLastEpoch() const { return position.epoch - (position.slice == 0 && position.epoch > 0); }
  void findFailed(const Entry &taken, int64_t slice, Failed &failed);
  std::string describePlace(int64_t step, int64_t slice) const;
  Status explain(const Status &status, ortc_status told, const Entry &taken);
  Status warnOfLoss(const Entry &taken);
  Status checkWeights(const Entry &taken);
  std::string describeKept() const;
  Status endEpoch();
  Status keep(const Status &failure);
  Metadata describePosition() const;
  Status saveCheckpoint();
  Status save();

  // train_evaluation.cpp
  bool isEvaluationDue() const;
  Status evaluateNow(bool isDue);
  Status follow(const Evaluation &result);

  const TrainOptions &options;
  const TrainingParts parts;
  Observer &observer;
  const volatile std::sig_atomic_t &interrupted;
  const Artifact &artifact;
  Session &session;

  const Entry *accumulateEntry = nullptr; ///< of steps that end without an update; null: every step has one
  int64_t accumulate = 1;                 ///< gradient steps before an update
  std::string loadedFrom;                 ///< the checkpoint; "": there was none
  Position position;
  Follower follower;
  Schedule schedule;                      ///< the position's, with its end
  int64_t stepsDone = 0, stepsWanted = 0; ///< of this run
  int64_t lastEpoch = -1;           ///< of a stream, whose steps nobody has counted: ends before this one
  double setRate = 0, lastLoss = 0; ///< the rate as it was chosen
  double knownRate = 0;             ///< the rate as the session has it
  std::optional<double> takenRate;  ///< the --lr that a plateau began with
  int64_t savedStep = -1, evaluatedStep = -1;
  bool isStopped = false, isAbandoned = false;
  bool training = false, evaluating = false;
  bool hasEndedEpoch = false; ///< with the last step
  FiniteCheck finite;
  bool isFinitenessKnown = false; ///< `finite` has begun
  LossTrend losses;               ///< the finite ones
  /// The first step of this run with a loss that is not finite, which was told; -1: none.
  int64_t failedStep = -1;
  bool isNotFinite = false;  ///< the run has ended for a loss or weights that are not
  std::string updateCounter; ///< the state that counts updates
  bool hasLossScale = false; ///< the artifact has; steps with infinite gradients are skipped
  double skippedBefore = 0;  ///< of other runs
  WeightedSum epochLoss;     ///< of the epoch's steps in this run
  int64_t epochSteps = 0;
  std::string evaluation; ///< what was found since the last line of an epoch
  Clock::time_point started, epochStarted;
  Feeder feeder; // ends before what it reads
};

} // namespace ortc::engine
