// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include "host/loss_info.h"
#include "host/metrics/metric.h"

namespace ortc::host {

/// An output or an input before there are data.
struct TensorShape {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
};

/// What a metric compares. The keys `output`, `label`, `axis` and `ignore` of its spec say it; without them it is what
/// the loss compares.
struct Comparison {
  std::string output, label;
  std::optional<int64_t> axis; ///< of classes in the output, not negative
  std::optional<int64_t> ignore;
  std::string inputLengths,
      targetLengths; ///< of sequences: inputs with the sizes of samples; empty: all count
  MetricFacts facts;

  bool isSame(const Comparison &other) const {
    return output == other.output && label == other.label && axis == other.axis && ignore == other.ignore &&
           facts.labels == other.facts.labels; // sequences have one loss that says the rest
  }
};

class MetricSet {
public:
  /// Reads a spec and adds it; one that is there already stays. Refuses unknown names and keys.
  Status add(const std::string &spec);
  bool has(const std::string &spec) const;

  /// Begins an evaluation: refuses metrics that do not fit what they compare. Of several losses none says it.
  Status begin(const std::vector<LossInfo> &losses, const std::vector<TensorShape> &outputs,
               const std::vector<TensorShape> &inputs);
  /// The outputs that are compared; known once an evaluation has begun.
  std::vector<std::string> getOutputs() const;
  /// Adds a slice, of whose `batch` samples the first `rows` count; a batch of 0: all rows do.
  Status addSlice(const std::function<TensorView(const std::string &name)> &view, int64_t rows,
                  int64_t batch);
  /// Names, as they were given, and values; NaN where there is none.
  std::vector<std::pair<std::string, double>> compute();

private:
  struct Wanted {
    std::string spec;
    const MetricKind *kind;
    MakeMetric make;
    Comparison asked;               ///< without facts
    std::unique_ptr<Metric> metric; ///< of this evaluation
  };
  /// Metrics of equal comparisons share the reading of scores.
  struct Group {
    Comparison comparison;
    std::vector<Metric *> metrics;
    void add(const Prediction &prediction) {
      for (Metric *metric : metrics)
        metric->add(prediction);
    }
  };
  static void addChoices(Group &group, const TensorView &output, const TensorView &label, int64_t rows);
  using View = std::function<TensorView(const std::string &name)>;
  static void addSequences(Group &group, const TensorView &output, const TensorView &label, const View &view,
                           int64_t samples);
  static void addValues(Group &group, const TensorView &output, const TensorView &label, int64_t rows);

  std::vector<Wanted> wanted;
  std::vector<Group> groups; ///< of this evaluation
};

} // namespace ortc::host
