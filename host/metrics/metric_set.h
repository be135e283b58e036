// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "host/loss_info.h"
#include "host/metrics/metric.h"

namespace ortc::host {

/// An output or a label before there are data.
struct TensorShape {
  DataType type = DataType::None;
  Shape shape;
};

class MetricSet {
public:
  /// Reads a spec and adds it; one that is there already stays. Refuses unknown names and keys.
  Status add(const std::string &spec);
  bool isEmpty() const { return wanted.empty(); }
  bool has(const std::string &spec) const;

  /// Begins an evaluation: refuses metrics that do not fit the loss, its output or its label.
  Status begin(const LossInfo &loss, const TensorShape &output, const TensorShape &label);
  /// Adds the first `rows` rows of a slice, of tensors as begin() has seen them.
  Status addSlice(const TensorView &output, const TensorView &label, int64_t rows);
  /// Names, as they were given, and values; NaN where there is none.
  std::vector<std::pair<std::string, double>> compute();

private:
  struct Wanted {
    std::string spec;
    const MetricKind *kind;
    MakeMetric make;
  };
  Status describe(const TensorShape &output, const TensorShape &label);
  void addChoices(const TensorView &output, const TensorView &label, int64_t rows);
  void addValues(const TensorView &output, const TensorView &label, int64_t rows);
  void pass(const Prediction &prediction);

  std::vector<Wanted> wanted;
  std::vector<std::unique_ptr<Metric>> metrics; ///< of this evaluation, in the order of `wanted`
  LossInfo loss;
  MetricFacts facts;
  std::vector<double> scores; ///< of one prediction
};

} // namespace ortc::host
