// One training by `ortc run`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>

#include "engine/data/feeder.h"
#include "engine/report.h"
#include "engine/session/not_finite.h"
#include "engine/session/position.h"
#include "engine/training/buckets.h"
#include "engine/training/evaluate.h"
#include "engine/training/profile.h"
#include "engine/training/train_loop.h"

namespace ortc::engine {

// State of artifacts with --loss-scale.
inline constexpr const char *kLossScale = "loss_scale", *kSkipped = "loss_scale.skipped";

/// One run from opening the artifact to the last line. Methods are called in the order they stand: up to planRates()
/// nothing is trained (train_setup.cpp); then come steps (train_loop.cpp), and evaluations (train_evaluation.cpp).
class Trainer {
public:
  Trainer(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted)
      : options(options), interrupted(interrupted), reporter(options.quiet) {}

  Status run();

private:
  using Clock = std::chrono::steady_clock;
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
  void startFeeding();
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
  Status checkWeights(const Entry &taken);
  std::string describeKept() const;
  void endEpoch();
  Status keep(const Status &failure);
  Metadata describePosition() const;
  Status saveFile(const std::string &path);
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
  FiniteCheck finite;
  LossTrend losses; ///< the finite ones
  /// the first one of this run with a loss that is not finite, which was said; -1: none
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
