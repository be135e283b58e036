// auc: the area under the ROC curve of two classes, exact, by the ranks of the scores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ortc::engine {
namespace {

/// Ranks need all scores: 8 bytes each. 512 MiB of them are as many as twice a product of counts holds exactly, too.
constexpr int64_t kMostScores = int64_t(1) << 26;

/// The share of pairs of a right and a wrong sample in which the right one has the larger score; equal scores are half
/// of it. That is the area under the curve.
class Auc : public Metric {
public:
  explicit Auc(std::string what) : what(std::move(what)) {}
  Status expect(int64_t count) override {
    if (int64_t(positive.size() + negative.size()) + count > kMostScores)
      return Status::failure(what + " keeps 8 bytes for every label, and the data have more than " +
                             std::to_string(kMostScores) + " labels; --steps takes a part of them");
    return Status();
  }
  void add(const Prediction &prediction) override {
    double score = prediction.scores[1] - prediction.scores[0];
    hasNan |= std::isnan(score);
    (prediction.wanted == 1 ? positive : negative).push_back(score);
  }
  double compute() override {
    if (hasNan || positive.empty() || negative.empty())
      return std::numeric_limits<double>::quiet_NaN();
    std::sort(positive.begin(), positive.end());
    std::sort(negative.begin(), negative.end());
    uint64_t halves = 0;
    auto lower = negative.begin(), upper = negative.begin();
    for (double score : positive) {
      lower = std::lower_bound(lower, negative.end(), score);
      upper = std::upper_bound(std::max(lower, upper), negative.end(), score);
      halves += uint64_t(lower - negative.begin()) + uint64_t(upper - negative.begin());
    }
    return double(halves) / (2 * double(positive.size()) * double(negative.size()));
  }

private:
  std::string what;
  std::vector<double> positive, negative;
  bool hasNan = false;
};

} // namespace

Status parseAuc(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [what](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    if (facts.classes != 2)
      return Status::refusal(what + " is for two classes, and the output has " +
                             std::to_string(facts.classes));
    metric = std::make_unique<Auc>(what);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

} // namespace ortc::engine
