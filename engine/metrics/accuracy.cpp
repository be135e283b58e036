// accuracy, token_accuracy, topk: the share of predictions that are right.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric.h"

#include <cmath>
#include <limits>

#include "support/Plural.h"

namespace ortc::engine {

int64_t findLargest(const double *scores, int64_t classes) {
  int64_t best = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (std::isnan(scores[i]))
      return -1;
    if (scores[i] > scores[best])
      best = i;
  }
  return best;
}

static double divide(int64_t right, int64_t counted) {
  return counted ? double(right) / double(counted) : std::numeric_limits<double>::quiet_NaN();
}

void Accuracy::add(const Prediction &prediction) {
  const int64_t predicted = findLargest(prediction.scores, classes);
  ++counted;
  right += predicted == prediction.wanted;
  notNumbers += predicted < 0;
}

double Accuracy::getShare() const { return divide(right, counted); }

namespace {

/// A prediction is right where fewer than `most` classes come before the right one: those with a larger score, and
/// of equal ones the lower classes. With a NaN it is wrong.
class TopK : public Metric {
public:
  TopK(int64_t most, int64_t classes) : most(most), classes(classes) {}
  void add(const Prediction &prediction) override {
    ++counted;
    double score = prediction.scores[prediction.wanted];
    int64_t before = 0;
    for (int64_t i = 0; i < classes; ++i) {
      if (std::isnan(prediction.scores[i]))
        return;
      before += prediction.scores[i] > score || (prediction.scores[i] == score && i < prediction.wanted);
    }
    right += before < most;
  }
  double compute() override { return divide(right, counted); }

private:
  int64_t most, classes, right = 0, counted = 0;
};

} // namespace

Status parseAccuracy(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    metric = std::make_unique<Accuracy>(facts.classes);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

Status parseTokenAccuracy(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [what](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    if (!facts.isSequence)
      return Status::refusal(what +
                             " is for samples with a label for each of their tokens, and these have one "
                             "label each; accuracy fits");
    metric = std::make_unique<Accuracy>(facts.classes);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

Status parseTopK(const Spec &spec, const std::string &what, MakeMetric &make) {
  int64_t most = 5;
  ORTC_TRY(checkMetricKeys(spec, what, {"k"}));
  ORTC_TRY(readWhole(spec, what, "k", 1, INT32_MAX, most));
  make = [most, what](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    if (most > facts.classes)
      return Status::refusal(what + ": k is " + std::to_string(most) + ", and the output has " +
                             formatCount(facts.classes, "class", "classes") + "; give a smaller k");
    metric = std::make_unique<TopK>(most, facts.classes);
    return Status();
  };
  return Status();
}

} // namespace ortc::engine
