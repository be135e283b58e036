// A number that evaluation computes from outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/Spec.h"

namespace ortc::engine {

/// One prediction and what is right. Labels that take no part are not among them.
struct Prediction {
  const double *scores = nullptr; ///< of each class; of values the one that is predicted
  int64_t wanted = 0;             ///< the class that is right
  double value = 0;               ///< the value that is right
  int64_t column = 0;             ///< of a value in its row
  /// Of a sequence: the class with the largest score of every frame (-1: a score is NaN), and what is right.
  std::span<const int64_t> frames, labels;
};

/// What labels are, for a metric.
enum class LabelKind {
  Indices,       ///< of classes
  Probabilities, ///< of classes; the most probable one is right
  Decisions,     ///< a logit and a probability each: two classes with the scores 0 and the logit
  Values,        ///< numbers of the output's shape
  Sequences      ///< of classes, which frames of a sample follow one another as
};

/// What a metric knows before the first prediction.
struct MetricFacts {
  LabelKind labels = LabelKind::Indices;
  int64_t classes = 0;     ///< of all but values
  int64_t columns = 1;     ///< values of a row
  int64_t blank = -1;      ///< of sequences: the class between labels
  bool isSequence = false; ///< a sample has several labels
};

/// A sum in the making.
class Metric {
public:
  virtual ~Metric() = default;
  /// Before `count` predictions more. Refuses those that it has no memory for.
  virtual Status expect([[maybe_unused]] int64_t count) { return Status(); }
  virtual void add(const Prediction &prediction) = 0;
  /// NaN where it is not defined.
  virtual double compute() = 0;
};

/// The share of predictions whose class with the largest score, of equal ones the lowest, is the right one. With a NaN
/// one is wrong.
class Accuracy : public Metric {
public:
  explicit Accuracy(int64_t classes) : classes(classes) {}
  void add(const Prediction &prediction) override;
  double compute() override { return getShare(); }
  double getShare() const; ///< NaN of no prediction

  int64_t right = 0, counted = 0;
  int64_t notNumbers = 0; ///< predictions with a NaN

private:
  int64_t classes;
};

/// Makes one; refuses facts that it does not fit.
using MakeMetric = std::function<Status(const MetricFacts &facts, std::unique_ptr<Metric> &metric)>;

/// A row of the table of metrics.
struct MetricKind {
  const char *name;
  std::vector<LabelKind> labels; ///< that it takes
  /// Reads the keys; `what` begins messages.
  Status (*parse)(const Spec &spec, const std::string &what, MakeMetric &make);
};

/// All there are; the order is that of messages.
const std::vector<MetricKind> &listMetrics();

/// checkKeys() for a metric's own keys; its message also has those that all metrics take, which are no more in `spec`.
Status checkMetricKeys(const Spec &spec, const std::string &what, std::vector<std::string> keys);

/// The class with the largest score, ties to the lower one; -1 where a score is NaN.
int64_t findLargest(const double *scores, int64_t classes);

// Each in the file of its family.
Status parseAccuracy(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseTokenAccuracy(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseLabelErrorRate(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseTopK(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseF1(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseIou(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseAuc(const Spec &spec, const std::string &what, MakeMetric &make);
Status parsePerplexity(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseMae(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseRmse(const Spec &spec, const std::string &what, MakeMetric &make);
Status parseR2(const Spec &spec, const std::string &what, MakeMetric &make);

} // namespace ortc::engine
