// What a training makes of its evaluations: the best one, an early end, a learning rate that falls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/plateau.h"
#include "support/Status.h"

namespace ortc::engine {

/// `--best METRIC:max|min`: what is followed, and where to. "loss" is the mean loss of an evaluation, "loss.NAME" and
/// "accuracy.NAME" are of one of several losses.
struct Goal {
  std::string metric = "loss";
  bool isMaximum = false;

  /// The metric itself is checked where metrics are.
  static Status parse(const std::string &text, Goal &goal);
  /// Whether the name is that of a figure of losses, which an artifact has or not; others are names of metrics.
  static bool isOfLoss(const std::string &metric) {
    return metric == "loss" || metric.starts_with("loss.") || metric.starts_with("accuracy.");
  }
  std::string format() const { return metric + (isMaximum ? ":max" : ":min"); }
};

/// Which evaluations count as better, and what follows from that.
struct FollowOptions {
  std::optional<Goal> goal;       ///< absent: that of the checkpoint, or the smallest loss
  int64_t patience = 0;           ///< evaluations without a better one that end the training; 0: none do
  std::optional<Plateau> plateau; ///< absent: that of the checkpoint
  bool savesBest = false;         ///< the best one has a file
};

/// The state of all that, which checkpoints carry in their metadata under keys that begin with "run.".
class Follower {
public:
  /// With nothing followed so far.
  void begin(const FollowOptions &wanted);
  /// Goes on from a checkpoint; `notes` says what starts anew. `path` begins messages.
  Status resume(const std::map<std::string, std::string> &metadata, const std::string &path,
                std::vector<std::string> &notes);
  void describe(std::map<std::string, std::string> &metadata) const;

  bool isActive() const { return options.goal || options.patience || options.savesBest || options.plateau; }
  bool hasPlateau() const { return options.plateau.has_value(); }
  /// A rate that was asked for replaces the schedule of a checkpoint.
  void dropPlateau() { options.plateau.reset(); }
  Goal getGoal() const { return options.goal.value_or(Goal()); }
  /// An evaluation that was due after `step`; `rate` may fall. True when it is the best one.
  bool add(double value, int64_t step, double &rate);
  /// Whether so many evaluations had nothing better that the training ends.
  bool isExhausted() const { return options.patience > 0 && bad >= options.patience; }

  int64_t getEvaluatedStep() const { return evaluatedStep; } ///< -1: none
  int64_t getBestStep() const { return bestStep; }           ///< -1: none
  double getBest() const { return best; }

private:
  FollowOptions options;
  double best = 0;
  int64_t bestStep = -1, evaluatedStep = -1;
  int64_t bad = 0; ///< evaluations since the best one
};

} // namespace ortc::engine
