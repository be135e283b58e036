// Mean loss and accuracy over a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/metrics/metric_set.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// One of the losses.
struct LossMeasure {
  std::string name; ///< empty where it is the only one
  WeightedSum sum;
  double weight = 1;                ///< in the total
  std::optional<Accuracy> accuracy; ///< where it has classes
  std::string formatAccuracy() const;
  /// NaN of no prediction.
  double getAccuracy() const { return accuracy->getShare(); }
  /// The key of a figure among those of all losses: "accuracy", of several "accuracy.NAME".
  std::string key(const std::string &figure) const { return name.empty() ? figure : figure + "." + name; }
};

/// Losses and metrics over some slices.
struct Evaluation {
  std::vector<LossMeasure> losses;
  int64_t slices = 0, items = 0;                       ///< items: samples of a batch, else slices
  std::string note;                                    ///< "" or what a mean could not do exactly
  std::vector<std::pair<std::string, double>> metrics; ///< that were asked for, but an accuracy of classes
  /// The weighted sum of the losses' means.
  double getLoss() const;
  /// "loss X, accuracy Y", numbers as `format` has them; of several losses, each behind the sum.
  std::string formatLosses(const std::function<std::string(double)> &format) const;
  /// ", NAME VALUE" of every metric.
  std::string formatMetrics() const;
  /// Whether there is one loss, which has an accuracy.
  bool hasAccuracy() const { return losses.size() == 1 && losses.front().accuracy; }
  /// The value of a figure (listFigures()) or a metric; NaN where there is none.
  double find(const std::string &metric) const;
};

/// What an evaluation gives without any metric: "loss"; of several losses also "loss.NAME", and "accuracy.NAME" of
/// those with classes.
std::vector<std::string> listFigures(const Artifact &artifact);

/// Where an evaluation has its slices from, one after the other.
class SliceSource {
public:
  virtual ~SliceSource() = default;
  /// Feeds the next slice to `entry`, or to one of another binding, which takes its place; nullptr where none is left.
  virtual Status feed(Session &session, const Entry *&entry) = 0;
  /// The samples of that slice, and those of them that repeat no others; a batch of 0: rows are no samples.
  virtual int64_t getBatch() const = 0;
  virtual int64_t getRows() const = 0;
  /// Adds to the message of a step of that slice where it is from.
  virtual std::string explain(const std::string &message, Session &session, const Entry &entry,
                              const std::vector<LossInfo> &losses) const = 0;
};

/// All slices of data, or the first ones.
std::unique_ptr<SliceSource> makeSlices(const Batches &batches, int64_t slices);

/// Runs `entry` (of role eval) over the first `slices` slices. A short last batch is filled by repeating
/// samples, and their part in the loss is taken out again: labels that may be ignored are, and where every row counts
/// the same, more steps tell what the repeated ones add. No formula of a loss is known here. `progress` says after
/// every slice whether to go on. `metrics` are computed, too, from the real rows.
Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, const Batches &batches,
                int64_t slices, const std::function<bool(int64_t slice)> &progress, MetricSet &metrics,
                Evaluation &result);

/// The same from any source.
Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, SliceSource &source,
                const std::function<bool()> &progress, MetricSet &metrics, Evaluation &result);

/// Refuses metrics that an evaluation with `entry` would refuse.
Status checkMetrics(const Artifact &artifact, const Entry &entry, MetricSet &metrics);

} // namespace ortc::engine
