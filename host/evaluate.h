// Mean loss and accuracy over a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>

#include "host/metrics/metric_set.h"
#include "host/session.h"

namespace ortc::host {

struct Evaluation {
  WeightedSum loss;
  bool hasAccuracy = false;
  int64_t right = 0, counted = 0;                      ///< predictions; counted: labels that are not ignored
  int64_t slices = 0, items = 0;                       ///< items: samples of a batch, else slices
  std::string note;                                    ///< "" or what the mean could not do exactly
  int64_t notNumbers = 0;                              ///< predictions with a NaN; they are wrong
  std::vector<std::pair<std::string, double>> metrics; ///< that were asked for, but an accuracy of classes
  std::string formatAccuracy() const;
  /// The value of "loss", "accuracy" or a metric; NaN where there is none.
  double find(const std::string &metric) const;
  /// ", NAME VALUE" of every metric.
  std::string formatMetrics() const;
  double getAccuracy() const { return counted ? double(right) / double(counted) : 0; }
};

/// Runs `entry` (of role eval) over the first `slices` slices. A short last batch is filled by repeating
/// samples, and their part in the loss is taken out again: labels that may be ignored are, and where every row counts
/// the same, more steps tell what the repeated ones add. No formula of a loss is known here. `progress` says after
/// every slice whether to go on. `metrics` are computed, too, from the real rows.
Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, const Batches &batches,
                int64_t slices, const std::function<bool(int64_t slice)> &progress, MetricSet &metrics,
                Evaluation &result);

/// Refuses metrics that an evaluation with `entry` would refuse.
Status checkMetrics(const Artifact &artifact, const Entry &entry, MetricSet &metrics);

} // namespace ortc::host
