// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/metrics/comparison.h"

namespace ortc::engine {

/// A metric of somebody who reads the tensors of slices as they are: a function of a host program.
class SliceMetric {
public:
  virtual ~SliceMetric() = default;
  virtual void begin() = 0;
  /// Adds a slice, of whose `batch` samples the first `rows` count; a batch of 0: all rows do.
  virtual Status addSlice(const FindTensor &find, int64_t rows, int64_t batch) = 0;
  /// NaN where it is not defined.
  virtual double compute() = 0;
};

/// Metrics by their specs. begin(), addSlice() for each slice and compute() are one evaluation, any number of times.
class MetricSet {
public:
  /// Reads a spec and adds it; one that is there already stays. Refuses unknown names and keys.
  Status add(const std::string &spec);
  /// Adds one of somebody else's under a name that is free.
  void add(const std::string &name, std::shared_ptr<SliceMetric> metric);
  bool has(const std::string &spec) const;
  /// Whether there is one that may read any tensor.
  bool readsAll() const;

  /// Begins an evaluation: refuses metrics that do not fit what they compare. Of several losses none says it.
  Status begin(const std::vector<LossInfo> &losses, const std::vector<TensorShape> &outputs,
               const std::vector<TensorShape> &inputs);
  /// The outputs that are compared; known once an evaluation has begun.
  std::vector<std::string> getOutputs() const;
  /// The same, and the inputs that are read: all that addSlice() looks for, but by metrics of somebody else's.
  std::vector<std::string> getTensors() const;
  /// Adds a slice, of whose `batch` samples the first `rows` count; a batch of 0: all rows do.
  Status addSlice(const FindTensor &find, int64_t rows, int64_t batch);
  /// Names, as they were given, and values; NaN where there is none.
  std::vector<std::pair<std::string, double>> compute();

private:
  struct Wanted {
    std::string spec;
    const MetricKind *kind; ///< null: somebody else's
    MakeMetric make;
    Comparison asked;               ///< without facts
    std::unique_ptr<Metric> metric; ///< of this evaluation
    std::shared_ptr<SliceMetric> other = nullptr;
  };
  /// Metrics of equal comparisons share the reading of scores.
  struct Group {
    Comparison comparison;
    std::vector<Metric *> metrics;
  };
  std::vector<Wanted> wanted;
  std::vector<Group> groups; ///< of this evaluation
};

} // namespace ortc::engine
